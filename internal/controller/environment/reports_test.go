// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ociregistry "github.com/google/go-containerregistry/pkg/registry"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/registry/fetch"
	"github.com/fluxrollouts/rollout-controller/internal/registry/publish"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/fixture/loopback"
)

// clusters is a test env with two controllers, of staging and of production, that know of
// each other only through a registry. What makes them two clusters here is that neither
// reads the Environment of the other one.
type clusters struct {
	*testEnv
	host     string
	requests atomic.Int64
	away     atomic.Bool
	of       map[string]*Reconciler
}

const stagingCluster = "staging-eu"

func openClusters(t *testing.T) *clusters {
	t.Helper()
	s := &clusters{testEnv: open(t, rollouts("staging", "prod")...)}
	inner := ociregistry.New(ociregistry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if s.away.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.host = strings.TrimPrefix(server.URL, "http://")
	s.key(t, "signing-key", "trusted-keys")
	s.begin(t)
	return s
}

// key stores a new key, and its public part.
func (s *clusters) key(t *testing.T, private, public string) {
	t.Helper()
	key, err := report.Generate(report.Ed25519, rand.Reader)
	s.Expect(err).NotTo(HaveOccurred())
	secret, err := key.PrivatePEM()
	s.Expect(err).NotTo(HaveOccurred())
	trusted, err := key.PublicPEM()
	s.Expect(err).NotTo(HaveOccurred())
	s.store(private, map[string][]byte{"identity.key": secret})
	s.store(public, map[string][]byte{"any.pub": trusted})
}

func (s *clusters) store(name string, data map[string][]byte) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}, Data: data}
	err := s.Create(s.Ctx, secret)
	if err != nil {
		err = s.Update(s.Ctx, secret)
	}
	s.Expect(err).NotTo(HaveOccurred())
}

// begin starts both controllers. They know nothing but what is stored.
func (s *clusters) begin(t *testing.T) {
	t.Helper()
	s.of = map[string]*Reconciler{"staging": s.controller(t), "prod": s.controller(t)}
}

func (s *clusters) controller(t *testing.T) *Reconciler {
	t.Helper()
	s.restart()
	r := s.reconciler
	reader, err := registry.NewReader(s.WithWatch, s.WithWatch, loopback.Guard())
	s.Expect(err).NotTo(HaveOccurred())
	in := registry.NewReports(reader)
	r.Reports = fetch.New(s.WithWatch, in.Pull, fetch.NewKeys(s.WithWatch, s.Key("trusted-keys")), fetch.NewPlace(s.WithWatch), logr.Discard())
	r.Publisher = publish.New(s.WithWatch, in.Push, in.Pull, registry.PlaceOf, publish.NewKey(s.WithWatch, s.Key("signing-key")),
		publish.Identity{Cluster: stagingCluster, UID: publish.ClusterUID(s.WithWatch)}, logr.Discard())
	ctx, stop := context.WithCancel(s.Ctx)
	ended := make(chan error, 2)
	for _, start := range []func(context.Context) error{r.Reports.Start, r.Publisher.Start} {
		go func() { ended <- start(ctx) }()
	}
	t.Cleanup(func() {
		stop()
		s.Expect(errors.Join(<-ended, <-ended)).To(Succeed())
	})
	return r
}

func (s *clusters) stagingEnvironment() *fixture.EnvironmentBuilder {
	return staging().InNamespace(s.Namespace).With(func(spec *environmentsv1.EnvironmentSpec) {
		spec.Backend = environmentsv1.Backend{Type: environmentsv1.BackendOCI, Project: s.host + "/promotions/staging", Insecure: true}
	})
}

func (s *clusters) prodEnvironment() *fixture.EnvironmentBuilder {
	return prod().InNamespace(s.Namespace).After("staging", fixture.Remote(stagingCluster), func(u *environmentsv1.Upstream) {
		u.Namespace, u.Repository = s.Namespace, s.host+"/promotions/staging"
	}).With(func(spec *environmentsv1.EnvironmentSpec) {
		spec.Backend = environmentsv1.Backend{Type: environmentsv1.BackendOCI, Insecure: true}
	})
}

// pass runs one pass of the controller of an environment.
func (s *clusters) pass(name string) {
	result, err := s.of[name].Reconcile(s.Ctx, ctrl.Request{NamespacedName: s.Key(name)})
	s.Expect(err).NotTo(HaveOccurred())
	if e := s.environment(name); e.Spec.Backend.Type != environmentsv1.BackendGitHub {
		s.Expect(result).To(Equal(renewalOf(e, s.Clock.Now())))
	}
	s.CheckConditions(s.environment(name))
}

// until runs passes until an Environment is in a state.
func (s *clusters) until(name, what string, done func(environmentsv1.EnvironmentStatus) bool) environmentsv1.EnvironmentStatus {
	s.Eventually(func() bool {
		s.pass(name)
		return done(s.environment(name).Status)
	}).WithPolling(20*time.Millisecond).Should(BeTrue(), what)
	return s.environment(name).Status
}

// published waits until the report says a release in a state.
func (s *clusters) published(tag string, state v1alpha1.BakeStatus) {
	s.until("staging", "the report of "+tag, func(status environmentsv1.EnvironmentStatus) bool {
		return status.Report != nil && len(status.Releases) > 0 && status.Releases[0].Tag == tag && status.Releases[0].State == state &&
			status.Report.Digest == s.digestOf(status)
	})
}

// digestOf returns the digest of the report of what the Environment of staging says.
func (s *clusters) digestOf(status environmentsv1.EnvironmentStatus) string {
	system := &corev1.Namespace{}
	s.Expect(s.Get(s.Ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system)).To(Succeed())
	return report.Report{
		Source:     report.Source{Application: "shop", Environment: "staging", Cluster: stagingCluster, Namespace: s.Namespace, Rollout: "staging"},
		ClusterUID: string(system.UID), Releases: status.Releases,
	}.Digest()
}

func (s *clusters) reads(tag string) environmentsv1.EnvironmentStatus {
	return s.until("prod", "what staging says of "+tag, func(status environmentsv1.EnvironmentStatus) bool {
		return len(status.Upstreams) == 1 && status.Upstreams[0].Message == "" &&
			len(status.Upstreams[0].Releases) > 0 && status.Upstreams[0].Releases[0].Tag == tag
	})
}

func (s *clusters) refuses(reason, message string) environmentsv1.EnvironmentStatus {
	status := s.until("prod", reason, func(status environmentsv1.EnvironmentStatus) bool {
		return len(status.Upstreams) == 1 && status.Upstreams[0].Reason == reason && strings.Contains(status.Upstreams[0].Message, message)
	})
	s.Expect(s.ready("prod").Reason).To(Equal(reason))
	s.Expect(s.ready("prod").Message).To(Equal(status.Upstreams[0].Message))
	return status
}

// image returns a promotion of a release with a digest, as registries have them.
func image(tag string) *fixture.EntryBuilder {
	sum := sha256.Sum256([]byte(tag))
	return fixture.MakeEntry(tag).Version(fixture.MakeRelease(tag).Digest("sha256:" + hex.EncodeToString(sum[:])).Obj()).At(fixture.Noon)
}

func TestReportGoesFromClusterToCluster(t *testing.T) {
	s := openClusters(t)
	s.promotes("staging", image("1.0.0").Succeeded().BakeEnd(fixture.Noon))
	s.Add(s.stagingEnvironment().Obj())
	s.published("1.0.0", v1alpha1.BakeSucceeded)
	stored := s.environment("staging").Status.Report
	s.Expect(stored.Reference).To(Equal(s.host + "/promotions/staging:" + s.Namespace + ".staging"))
	s.Expect(stored.Sequence).To(BeNumerically(">", 0))
	s.Expect(s.ready("staging")).To(Equal(condition{metav1.ConditionTrue, environmentsv1.SucceededReason, "comes after no other environment"}))

	s.Add(s.prodEnvironment().Obj())
	known := s.reads("1.0.0").Upstreams[0]
	s.Expect(known.Sequence).To(Equal(stored.Sequence))
	s.Expect(known.Keys).To(HaveLen(1))
	s.Expect(known.Keys[0].Sequence).To(Equal(stored.Sequence))
	s.Expect(known.Source).To(Equal("shop/" + stagingCluster + "/" + s.Namespace + "/staging"))
	s.Expect(known.VerifiedTime.Time).To(BeTemporally("==", fixture.Noon))
	s.Expect(known.Releases[0].State).To(Equal(v1alpha1.BakeSucceeded))
	s.Expect(s.ready("prod")).To(Equal(condition{metav1.ConditionTrue, environmentsv1.SucceededReason, "takes releases that staging has proven"}))
	infos := s.environment("prod").Status.EnvironmentInfos
	s.Expect(infos).To(HaveLen(2))
	s.Expect(infos[0].Environment).To(Equal("staging"))
	s.Expect(infos[0].History).To(HaveLen(1))
	s.Expect(infos[0].History[0].Version.Tag).To(Equal("1.0.0"))
}

func TestReportWithoutTimesCanBeStored(t *testing.T) {
	s := openClusters(t)
	s.promotes("staging", image("1.0.0").Succeeded())
	s.Add(s.stagingEnvironment().Obj(), s.prodEnvironment().Obj())
	s.published("1.0.0", v1alpha1.BakeSucceeded)
	s.reads("1.0.0")
	s.Expect(s.environment("prod").Status.EnvironmentInfos[0].History).To(BeEmpty())
}

// publishes stores a report of another cluster, of an environment whose Rollout has its name.
func (s *clusters) publishes(environment string, releases []environmentsv1.Release) {
	secret := &corev1.Secret{}
	s.Expect(s.Get(s.Ctx, s.Key("signing-key"), secret)).To(Succeed())
	key, err := report.ParseSigningKey(secret.Data["identity.key"])
	s.Expect(err).NotTo(HaveOccurred())
	envelope, err := report.Sign(report.Report{
		Source:   report.Source{Application: "shop", Environment: environment, Cluster: stagingCluster, Namespace: s.Namespace, Rollout: environment},
		Sequence: fixture.Noon.Unix(), Created: metav1.NewTime(fixture.Noon), Releases: releases,
	}, key)
	s.Expect(err).NotTo(HaveOccurred())
	reader, err := registry.NewReader(s.WithWatch, s.WithWatch, loopback.Guard())
	s.Expect(err).NotTo(HaveOccurred())
	place := registry.Place{Repository: s.host + "/promotions/staging", Tag: report.Tag(s.Namespace, environment), Insecure: true, Namespace: s.Namespace}
	_, err = registry.NewReports(reader).Push(s.Ctx, place, envelope, "")
	s.Expect(err).NotTo(HaveOccurred())
}

// What upstreams in other clusters say does not make the status too large to be read, and what
// each of them runs is in it.
func TestStatusHasRoomForSixteenLongReports(t *testing.T) {
	s := openClusters(t)
	long := strings.Repeat("x", 250)
	prod := prod().InNamespace(s.Namespace).With(func(spec *environmentsv1.EnvironmentSpec) {
		spec.Backend = environmentsv1.Backend{Type: environmentsv1.BackendOCI, Insecure: true}
	})
	for i := range 16 {
		name := fmt.Sprintf("region-%02d", i)
		var releases []environmentsv1.Release
		for j := range 20 {
			releases = append(releases, environmentsv1.Release{
				Tag: fmt.Sprintf("1.%d.0", 20-j), Digest: *image(fmt.Sprint(j)).Obj().Version.Digest, Current: j == 0, ID: int64(20 - j),
				State: v1alpha1.BakeFailed, Revision: long, Message: long, Unhealthy: long, Withdrawn: long,
			})
		}
		s.publishes(name, releases)
		prod.After(name, fixture.Remote(stagingCluster), func(u *environmentsv1.Upstream) {
			u.Namespace, u.Rollout, u.Repository = s.Namespace, name, s.host+"/promotions/staging"
		})
	}
	s.Add(prod.Obj())
	status := s.until("prod", "all reports", func(status environmentsv1.EnvironmentStatus) bool {
		return len(status.Upstreams) == 16 && !slices.ContainsFunc(status.Upstreams, func(u environmentsv1.UpstreamStatus) bool { return u.Sequence == 0 })
	})
	for _, u := range status.Upstreams {
		s.Expect(u.Releases).NotTo(BeEmpty(), u.Environment)
		s.Expect(u.Releases[0].Tag).To(Equal("1.20.0"))
	}
	text, err := json.Marshal(status)
	s.Expect(err).NotTo(HaveOccurred())
	s.Expect(len(text)).To(BeNumerically("<", 64<<10))
}

func TestClustersAtRestAskNoRegistry(t *testing.T) {
	s := openClusters(t)
	s.promotes("staging", grownOld(image("1.0.0")))
	s.Add(s.stagingEnvironment().Obj(), s.prodEnvironment().Obj())
	s.published("1.0.0", v1alpha1.BakeSucceeded)
	s.reads("1.0.0")
	s.Eventually(func() bool { // both have stored what they know
		s.Wire.Forget()
		s.pass("staging")
		s.pass("prod")
		return len(s.Wire.Writes()) == 0
	}).Should(BeTrue())
	s.requests.Store(0)
	for range 3 {
		s.Pass(time.Hour)
		s.begin(t) // what was published and verified is known from the statuses
		s.pass("staging")
		s.pass("prod")
	}
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.Consistently(s.requests.Load).WithTimeout(300 * time.Millisecond).Should(BeZero())
}

func TestLookThatAUserAsksFor(t *testing.T) {
	s := openClusters(t)
	s.promotes("staging", image("1.0.0").Succeeded())
	s.Add(s.stagingEnvironment().Obj(), s.prodEnvironment().Obj())
	s.published("1.0.0", v1alpha1.BakeSucceeded)
	s.reads("1.0.0")
	s.promotes("staging", image("1.1.0").Deploying(), image("1.0.0").Succeeded())
	s.published("1.1.0", v1alpha1.BakeDeploying)
	s.pass("prod")
	s.Expect(s.environment("prod").Status.Upstreams[0].Releases[0].Tag).To(Equal("1.0.0"), "nobody waits for it")

	s.Change(&environmentsv1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}, func(o client.Object) {
		metav1.SetMetaDataAnnotation(&o.(*environmentsv1.Environment).ObjectMeta, v1alpha1.ReconcileRequestAnnotation, "now")
	})
	s.Expect(s.reads("1.1.0").LastHandledReconcileAt).To(Equal("now"))
}

func TestReportThatIsNotTrusted(t *testing.T) {
	s := openClusters(t)
	s.promotes("staging", image("1.0.0").Succeeded())
	s.key(t, "another-key", "trusted-keys")
	s.Add(s.stagingEnvironment().Obj(), s.prodEnvironment().Obj())
	s.published("1.0.0", v1alpha1.BakeSucceeded)
	status := s.refuses(environmentsv1.UpstreamNotTrustedReason, "what staging says cannot be verified: no key of ")
	s.Expect(status.Upstreams[0].Releases).To(BeEmpty())
	s.Expect(s.stalled("prod")).To(BeTrue())

	// What was corrected is found without another event.
	trusted := &corev1.Secret{}
	s.Expect(s.Get(s.Ctx, s.Key("signing-key"), trusted)).To(Succeed())
	key, err := report.ParseSigningKey(trusted.Data["identity.key"])
	s.Expect(err).NotTo(HaveOccurred())
	public, err := key.PublicPEM()
	s.Expect(err).NotTo(HaveOccurred())
	s.store("trusted-keys", map[string][]byte{"any.pub": public})
	s.reads("1.0.0")
	s.Expect(s.ready("prod").Reason).To(Equal(environmentsv1.SucceededReason))
}

func TestReportThatCannotBeReadOrStored(t *testing.T) {
	s := openClusters(t)
	s.promotes("staging", image("1.0.0").Succeeded())
	s.Add(s.prodEnvironment().Obj())
	s.refuses(environmentsv1.UpstreamUnreadableReason, "there is no report of staging at "+s.host+"/promotions/staging:")
	s.Expect(s.stalled("prod")).To(BeFalse())

	s.away.Store(true)
	s.Add(s.stagingEnvironment().Obj())
	status := s.until("staging", "a failure", func(status environmentsv1.EnvironmentStatus) bool {
		return status.Report != nil && status.Report.Reason == environmentsv1.PublishFailedReason
	})
	s.Expect(s.ready("staging")).To(Equal(condition{metav1.ConditionFalse, environmentsv1.PublishFailedReason, status.Report.Message}))
	s.Expect(s.stalled("staging")).To(BeFalse())
	s.Expect(status.Report.Message).To(ContainSubstring("502 Bad Gateway"))
	s.begin(t) // a process that begins has not tried yet, and does not claim that all is well
	s.pass("staging")
	s.Expect(s.ready("staging").Reason).To(Equal(environmentsv1.PublishFailedReason))
	events := slices.DeleteFunc(s.Events.Take(), func(e fixture.Event) bool { return e.On != "staging" })
	s.Expect(events).To(Equal([]fixture.Event{{
		On: "staging", Type: corev1.EventTypeWarning, Reason: environmentsv1.PublishFailedReason, Message: status.Report.Message,
	}}), "once, however often it fails")

	s.away.Store(false)
	s.published("1.0.0", v1alpha1.BakeSucceeded)
	s.Expect(s.ready("staging").Reason).To(Equal(environmentsv1.SucceededReason))
	s.reads("1.0.0")
}

func TestReportsWithoutKeys(t *testing.T) {
	s := openClusters(t)
	s.Expect(s.Delete(s.Ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "signing-key"}})).To(Succeed())
	s.Expect(s.Delete(s.Ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "trusted-keys"}})).To(Succeed())
	s.promotes("staging", image("1.0.0").Succeeded())
	s.Add(s.stagingEnvironment().Obj(), s.prodEnvironment().Obj())
	s.until("staging", "a missing key", func(status environmentsv1.EnvironmentStatus) bool {
		return status.Report != nil && status.Report.Reason == environmentsv1.SigningKeyMissingReason
	})
	s.Expect(s.stalled("staging")).To(BeTrue())
	s.refuses(environmentsv1.NoTrustedKeysReason, "trusted-keys")
	s.Expect(s.stalled("prod")).To(BeTrue())
	s.Expect(s.requests.Load()).To(BeZero(), "there is nothing to ask a registry for")
}

func TestUpstreamThatIsReplacedByAnotherClusterMustProveItself(t *testing.T) {
	s := openClusters(t)
	s.promotes("staging", image("1.0.0").Succeeded())
	s.Add(s.stagingEnvironment().Obj(), s.prodEnvironment().Obj())
	s.published("1.0.0", v1alpha1.BakeSucceeded)
	s.reads("1.0.0")
	s.Change(&environmentsv1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}, func(o client.Object) {
		o.(*environmentsv1.Environment).Spec.Upstreams[0].Cluster = "staging-us"
	})
	s.pass("prod")
	s.Expect(s.ready("prod").Reason).To(Equal(environmentsv1.UpstreamUnreadableReason))
	s.Expect(s.ready("prod").Message).To(ContainSubstring("has not been read yet"))
	s.refuses(environmentsv1.UpstreamNotTrustedReason, `it is about cluster "staging-eu", not "staging-us"`)
}

func TestOneOfTwoEnvironmentsReports(t *testing.T) {
	s := openClusters(t)
	s.promotes("staging", image("1.0.0").Succeeded())
	second := s.stagingEnvironment().Obj()
	second.Name, second.Spec.Environment = "staging-2", "preview"
	s.Add(s.stagingEnvironment().Obj(), second)
	s.of["staging-2"] = s.of["staging"]
	s.published("1.0.0", v1alpha1.BakeSucceeded)
	s.pass("staging-2")
	s.pass("staging-2")
	s.Expect(s.ready("staging-2")).To(Equal(condition{metav1.ConditionFalse, environmentsv1.ReportTakenReason,
		"the report is not published: Environment staging of the same Rollout reports there: give one of them another spec.backend.project"}))
	s.Expect(s.ready("staging").Reason).To(Equal(environmentsv1.SucceededReason))

	s.Expect(s.reconciler.environmentsConcerned(s.Ctx, s.environment("staging"))).To(ContainElement(ctrl.Request{NamespacedName: s.Key("staging-2")}))
	s.Expect(s.Delete(s.Ctx, s.environment("staging"))).To(Succeed())
	s.until("staging-2", "its report", func(status environmentsv1.EnvironmentStatus) bool {
		return status.Report != nil && status.Report.Digest != "" && status.Report.Reason == ""
	})
	s.Expect(s.ready("staging-2").Reason).To(Equal(environmentsv1.SucceededReason))
}

func TestReportsThatAreOff(t *testing.T) {
	s := openClusters(t)
	s.promotes("staging", image("1.0.0").Succeeded())
	s.Add(s.stagingEnvironment().Obj(), s.prodEnvironment().Obj())
	for _, r := range s.of {
		r.Reports, r.Publisher = nil, nil
	}
	s.pass("prod")
	s.Expect(s.ready("prod")).To(Equal(condition{metav1.ConditionFalse, environmentsv1.UpstreamUnreadableReason, reportsOff}))
	s.pass("staging")
	s.pass("staging") // the report follows the record
	s.Expect(s.ready("staging")).To(Equal(condition{metav1.ConditionFalse, environmentsv1.PublishFailedReason, reportsOff}))
	s.Expect(s.requests.Load()).To(BeZero())
}

func TestReasonIsThatOfWhatMustBeCorrected(t *testing.T) {
	unreadable := &verdict.Problem{Reason: environmentsv1.UpstreamUnreadableReason, Message: "away"}
	untrusted := &verdict.Problem{Reason: environmentsv1.UpstreamNotTrustedReason, Message: "not signed"}
	unpublished := &verdict.Problem{Reason: environmentsv1.PublishFailedReason, Message: "not stored"}
	keyless := &verdict.Problem{Reason: environmentsv1.SigningKeyMissingReason, Message: "no key"}
	for _, test := range []struct {
		upstreams []*verdict.Problem
		own       *verdict.Problem
		want      *verdict.Problem
	}{
		{nil, nil, nil},
		{[]*verdict.Problem{nil, unreadable}, nil, unreadable},
		{nil, unpublished, unpublished},
		{[]*verdict.Problem{unreadable}, unpublished, &verdict.Problem{Reason: unreadable.Reason, Message: "away; not stored"}},
		{[]*verdict.Problem{unreadable}, keyless, &verdict.Problem{Reason: keyless.Reason, Message: "away; no key"}},
		{[]*verdict.Problem{untrusted, unreadable}, keyless, &verdict.Problem{Reason: untrusted.Reason, Message: "not signed; away; no key"}},
	} {
		o := observed{Environment: prod().Obj(), exists: true}
		for _, problem := range test.upstreams {
			o.read.Upstreams = append(o.read.Upstreams, upstream.Upstream{Problem: problem})
		}
		o.published.Problem = test.own
		NewWithT(t).Expect(o.problem()).To(Equal(test.want))
	}
}
