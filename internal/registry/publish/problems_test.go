// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/background"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// fails passes until an attempt more has failed, and returns the problem.
func (s *site) fails(e *environment) verdict.Problem {
	s.t.Helper()
	last := s.settles(e)
	s.Expect(last.Problem).NotTo(BeNil())
	return *last.Problem
}

// failures returns how many attempts in a row have failed, all of them concluded.
func (s *site) failures(e *environment) int {
	s.Publisher.mu.Lock()
	defer s.Publisher.mu.Unlock()
	return s.subjects[client.ObjectKeyFromObject(e)].failures
}

func TestRegistryGoesAwayAndComesBack(t *testing.T) {
	s := open(t)
	e := s.add("shop", "web")
	e.says(deploying("1.0.0"))
	s.published(e)
	s.later(time.Minute)
	s.set(func() {
		s.handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = fmt.Fprint(w, "<html>request ", time.Now().UnixNano()) // another one each time
		})
	})
	e.says(deploying("1.1.0"))
	want := verdict.Problem{
		Reason: environmentsv1.PublishFailedReason, Message: "the report cannot be stored in " + s.host() + "/promotions/staging:shop.web: the registry answers 502 Bad Gateway",
	}
	s.Expect(s.fails(e)).To(Equal(want))
	woken := s.wakes()
	attempts := s.attempts()
	for i, pause := range []time.Duration{5, 10, 20, 40, 80, 160, 320, 600, 600} {
		e.says(deploying(fmt.Sprint("1.1.", i)))
		s.Expect(s.pass(e).Pending).To(BeFalse(), "it is known that the last attempt failed")
		s.later(pause*time.Second - time.Second)
		s.Consistently(s.attempts, 10*time.Millisecond).Should(Equal(attempts+i), "another content is no reason to try again")
		s.later(time.Second)
		s.Eventually(func() int { return s.failures(e) }).Should(Equal(i + 2))
		s.Expect(s.attempts()).To(Equal(attempts + i + 1))
		s.Expect(*s.pass(e).Problem).To(Equal(want))
	}
	s.Expect(s.wakes()).To(Equal(woken), "there was nothing new")
	s.Expect(s.lines()).To(HaveLen(1))

	e.change(func(spec *environmentsv1.EnvironmentSpec) { spec.Backend.Secret = "" })
	s.Expect(s.pass(e)).To(Equal(Publication{Pending: true, Stored: e.Status.Report}), "another spec may be the end of it")
	s.later(shortestPause) // instead of ten minutes
	s.Expect(s.fails(e)).To(Equal(want))
	s.set(func() { s.handler = nil })
	s.later(firstRetry)
	s.Eventually(func() *verdict.Problem { return s.pass(e).Problem }).Should(BeNil())
	s.Expect(s.published(e).Releases[0].Tag).To(Equal("1.1.8"))
}

func TestProblemEndsWhenNothingHasToBeStored(t *testing.T) {
	s := open(t)
	e := s.add("shop", "web")
	e.says(deploying("1.0.0"))
	s.published(e)
	s.later(time.Minute)
	s.set(func() { s.noKey = unsigned("x") })
	e.says(deploying("1.1.0"))
	s.fails(e)
	e.says(deploying("1.0.0"))
	s.Expect(s.pass(e)).To(Equal(Publication{Stored: e.Status.Report}))
}

func TestRegistryThatAsksToWaitIsLeftAlone(t *testing.T) {
	s := open(t)
	e := s.add("shop", "web")
	s.set(func() {
		s.handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "90")
			w.WriteHeader(http.StatusTooManyRequests)
		})
	})
	e.says(deploying("1.0.0"))
	s.Expect(s.fails(e).Message).To(Equal("the report cannot be stored, because " + s.host() +
		"/promotions/staging:shop.web cannot be read: the registry asks to wait: 429 Too Many Requests"))
	s.set(func() { s.handler = nil })
	s.requests()
	s.later(89 * time.Second)
	s.rests()
	s.later(time.Second)
	s.Eventually(func() *verdict.Problem { return s.pass(e).Problem }).Should(BeNil())
	s.published(e)
}

// TestProcessEnds covers a process that ends before and after the write of a report, and
// never comes to the write of the status.
func TestProcessEnds(t *testing.T) {
	since := fixture.Noon.Add(-30 * time.Minute)
	baked := healthy(v1alpha1.BakeSucceeded, "1.0.0", since)
	unhealthy := releaseIn(v1alpha1.BakeSucceeded, "1.0.0")
	unhealthy.Unhealthy, unhealthy.Soaked = "HealthCheck shop/smoke", &metav1.Duration{}
	unknown := unhealthy
	unknown.Unhealthy = ""
	for name, test := range map[string]struct {
		before, after environmentsv1.Release
		change        func(*site)
		adopted       bool
	}{
		"and nothing changes":             {baked, baked, nil, true},
		"while it is deploying":           {deploying("1.0.0"), deploying("1.0.0"), nil, true},
		"while it is unhealthy":           {unhealthy, unhealthy, nil, true},
		"and another release is deployed": {baked, deploying("1.1.0"), nil, false},
		"and the soak begins anew":        {baked, healthy(v1alpha1.BakeSucceeded, "1.0.0", fixture.Noon), nil, false},
		"and the soak is lost":            {baked, unknown, nil, false},
		"and the soak begins":             {unknown, baked, nil, false},
		"and the key is replaced":         {baked, baked, func(s *site) { s.key = keyOf(s.t, 2) }, false},
		"and the cluster has a new name":  {baked, baked, func(s *site) { s.identity.Cluster = "staging-us" }, false},
		"and the UID may not be read now": {baked, baked, func(s *site) { s.clusterUID = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			e := s.add("shop", "web")
			e.says(test.before)
			before := s.published(e)
			e.Status.Report = nil
			s.stop()
			s.requests()
			s.later(time.Hour)
			if test.change != nil {
				test.change(s)
			}
			s.start()
			e.says(test.after)
			after := s.published(e)
			s.Expect(e.Status.Report.Sequence).To(Equal(after.Sequence))
			if test.adopted {
				s.Expect(after).To(Equal(before))
				s.Expect(e.Status.Report.PublishedTime.Time).To(BeTemporally("==", fixture.Noon))
				s.Expect(s.requests()).To(Equal(2), "log in, and look")
			} else {
				s.Expect(after.Sequence).To(Equal(fixture.Noon.Add(time.Hour).Unix()))
			}
			s.restart()
			s.settles(e)
			s.requests()
			s.rests()
		})
	}
}

func TestReportOfAnotherClusterIsNotOverwritten(t *testing.T) {
	const ours = "5f2c"
	for name, test := range map[string]struct {
		cluster, uid string
		key          byte
		ourUID       string
		of           string // whose report it is; empty if it is overwritten
		takeOver     string
	}{
		"the same cluster":                 {"staging-eu", ours, 1, ours, "", ""},
		"with its former key":              {"staging-eu", ours, 2, ours, "", ""},
		"with its former name":             {"staging", ours, 1, ours, "", ""},
		"when its UID was not known":       {"staging-eu", "", 1, ours, "", ""},
		"when its UID is no longer known":  {"staging-eu", "6a1d", 1, "", "", ""},
		"of the same name and key":         {"staging-eu", "6a1d", 1, ours, " with the same name, staging-eu", ""},
		"of the same name and another key": {"staging-eu", "6a1d", 2, ours, " with the same name, staging-eu", ""},
		"of the same key":                  {"staging-us", "6a1d", 1, ours, `, "staging-us"`, ""},
		"of another key":                   {"staging-us", "6a1d", 2, ours, `, "staging-us"`, ""},
		"whose UID is not known":           {"staging-us", "", 1, ours, `, "staging-us"`, ""},
		"when no UID is known":             {"staging-us", "", 2, "", `, "staging-us"`, ""},
		"of the cluster that is replaced":  {"staging-eu", "6a1d", 1, ours, "", "6a1d"},
		"of one that had another name":     {"staging-us", "6a1d", 2, ours, "", "6a1d"},
		"of yet another cluster":           {"staging-eu", "77b0", 1, ours, " with the same name, staging-eu", "6a1d"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			s.clusterUID = test.ourUID
			s.identity.Replaces = test.takeOver
			s.restart()
			e := s.add("shop", "web")
			source := s.sourceOf(e)
			source.Cluster = test.cluster
			envelope, err := report.Sign(report.Report{Source: source, ClusterUID: test.uid, Sequence: 7}, keyOf(t, test.key))
			s.Expect(err).NotTo(HaveOccurred())
			s.put(e, envelope)
			e.says(deploying("1.0.0"))
			if test.of == "" {
				s.published(e)
				return
			}
			remedy := "delete that report"
			if test.uid != "" {
				remedy = "start this controller with --take-over-reports-of=" + test.uid
			}
			want := verdict.Problem{Reason: environmentsv1.ReportTakenReason, Message: "the report is not published: " + s.host() +
				"/promotions/staging:shop.web is the report of another cluster" + test.of +
				": give each cluster a --cluster-name and a spec.backend.project of its own; if the other cluster is gone, " + remedy}
			s.Expect(s.fails(e)).To(Equal(want))
			s.Expect(s.stored(e)).To(Equal(envelope))
			s.later(firstRetry)
			s.Eventually(func() int { return s.failures(e) }).Should(Equal(2))
			s.Expect(s.registry.Delete(t.Context(), "promotions/staging", "shop.web")).To(Succeed())
			s.later(lastRetry)
			s.Eventually(func() *verdict.Problem { return s.pass(e).Problem }).Should(BeNil())
			s.published(e)
		})
	}
}

func TestSequenceGoesOnFromTheReplacedCluster(t *testing.T) {
	s := open(t)
	e := s.add("shop", "web")
	e.says(deploying("1.0.0"))
	old := s.published(e)
	s.identity.Replaces, s.clusterUID = s.clusterUID, "6a1d"
	s.restart()
	s.later(-time.Hour) // the clock of the old cluster was ahead
	e.Status.Report = nil
	s.Expect(s.published(e).Sequence).To(Equal(old.Sequence + 1))
	e.says(deploying("1.1.0"))
	s.identity.Replaces = ""
	s.restart()
	s.Eventually(func() string { return s.published(e).Releases[0].Tag }).Should(Equal("1.1.0"), "the flag is not needed any more")
}

// TestUIDThatIsNoneIsNotShown: anybody who can push chooses it.
func TestUIDThatIsNoneIsNotShown(t *testing.T) {
	s := open(t)
	e := s.add("shop", "web")
	envelope, err := report.Sign(report.Report{Source: s.sourceOf(e), ClusterUID: "a; rm -r /", Sequence: 7}, keyOf(t, 2))
	s.Expect(err).NotTo(HaveOccurred())
	s.put(e, envelope)
	e.says(deploying("1.0.0"))
	s.Expect(s.fails(e).Message).To(HaveSuffix("; if the other cluster is gone, delete that report"))
}

func TestWhatIsNoReportIsReplaced(t *testing.T) {
	s := open(t)
	e := s.add("shop", "web")
	s.put(e, []byte("<html>"))
	e.says(deploying("1.0.0"))
	s.published(e)
	s.Expect(s.lines()).To(ConsistOf(ContainSubstring(`"what is in the place of a report cannot be read, and is replaced"`)))
	s.Expect(s.lines()).To(ConsistOf(ContainSubstring(`it is not a signed envelope`)))
}

// One release that another client has written must not silence all the others.
func TestReleaseThatOthersWouldRefuseIsLeftOut(t *testing.T) {
	s := open(t)
	e := s.add("shop", "web")
	e.says(deploying("1.1.0"), releaseIn("Paused", "1.0.0"))
	s.Expect(s.published(e).Releases).To(ConsistOf(HaveField("Tag", "1.1.0")))
	s.Expect(s.lines()).To(ConsistOf(ContainSubstring(`1.0.0 is in state \"Paused\", which is unknown here`)))
}

func TestClusterNeedsAName(t *testing.T) {
	s := open(t)
	s.identity.Cluster = ""
	s.restart()
	e := s.add("shop", "web")
	e.says(deploying("1.0.0"))
	s.Expect(s.fails(e)).To(Equal(verdict.Problem{Reason: environmentsv1.SigningKeyMissingReason,
		Message: "the report is not published: the controller does not know the name of its cluster: start it with --cluster-name"}))
	s.rests()
}

func TestKeyIsAddedLater(t *testing.T) {
	s := open(t)
	s.noKey = unsigned("there is none")
	e := s.add("shop", "web")
	e.says(deploying("1.0.0"))
	s.Expect(s.fails(e)).To(Equal(verdict.Problem{Reason: environmentsv1.SigningKeyMissingReason, Message: "the report is not published: there is none"}))
	s.rests()
	s.set(func() { s.noKey = nil })
	s.later(firstRetry)
	s.Eventually(func() *verdict.Problem { return s.pass(e).Problem }).Should(BeNil())
	s.published(e)
}

func TestUserAsksForTheReportToBeSignedAgain(t *testing.T) {
	s := open(t)
	e := s.add("shop", "web")
	e.says(deploying("1.0.0"))
	before := s.published(e)
	s.requests()
	s.later(30 * time.Minute)
	s.set(func() { s.key = keyOf(t, 2) })
	s.settles(e)
	s.rests()
	_, err := report.Verify(s.stored(e), keyOf(t, 1).Trusted(), report.Expected{Source: s.sourceOf(e)})
	s.Expect(err).NotTo(HaveOccurred(), "it says the same, and nobody asked for more")

	e.Annotations = map[string]string{meta.ReconcileRequestAnnotation: "now"}
	s.pass(e)
	e.Status.LastHandledReconcileAt = "now"
	after := s.published(e) // with the new key
	s.Expect(after.Sequence).To(BeNumerically(">", before.Sequence))
	s.requests()
	s.later(30 * time.Minute)
	s.settles(e)
	s.rests()

	s.restart()
	s.set(func() { s.key = keyOf(t, 3) })
	e.Annotations[meta.ReconcileRequestAnnotation] = "again"
	s.pass(e)
	e.Status.LastHandledReconcileAt = "again"
	s.Expect(s.published(e).Sequence).To(BeNumerically(">", after.Sequence))
}

func TestUIDIsReadUntilThatSucceeds(t *testing.T) {
	s := open(t)
	s.clusterUID = "broken"
	e := s.add("shop", "web")
	e.says(deploying("1.0.0"))
	s.Expect(s.fails(e).Message).To(HavePrefix("the report cannot be published: "))
	s.rests()
	s.set(func() { s.clusterUID = "6a1d" })
	s.later(firstRetry)
	s.Eventually(func() *verdict.Problem { return s.pass(e).Problem }).Should(BeNil())
	s.Expect(s.published(e).ClusterUID).To(Equal("6a1d"))
	s.set(func() { s.clusterUID = "broken" })
	s.later(time.Minute)
	e.says(deploying("1.1.0"))
	s.published(e)
}

// TestRegistryThatHangsHoldsUpNoOtherNamespace: more reports than there are workers hang.
func TestRegistryThatHangsHoldsUpNoOtherNamespace(t *testing.T) {
	s := open(t)
	hangs := make(chan struct{})
	var hung []*environment
	slow := http.NewServeMux()
	slow.HandleFunc("/v2/slow/", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-hangs:
		case <-r.Context().Done():
		}
	})
	slow.Handle("/", s.registry)
	s.set(func() { s.handler = slow })
	for i := range 2 * background.Workers {
		e := s.add("slow", fmt.Sprint("web-", i))
		e.Spec.Backend.Project = s.host() + "/slow"
		e.says(deploying("1.0.0"))
		s.pass(e)
		hung = append(hung, e)
	}
	s.Eventually(s.attempts).Should(Equal(background.Workers / 2))
	for _, name := range []string{"web", "api"} {
		e := s.add("shop", name)
		e.says(deploying("1.0.0"))
		s.published(e)
	}
	s.Expect(s.attempts()).To(Equal(background.Workers/2 + 2))
	s.set(func() { s.handler = nil })
	close(hangs)
	for _, e := range hung {
		s.Eventually(func() *environmentsv1.ReportStatus {
			s.later(firstRetry)
			s.pass(e)
			return e.Status.Report
		}).ShouldNot(BeNil())
	}
}

func TestKey(t *testing.T) {
	name := types.NamespacedName{Namespace: "rollout-system", Name: "signing"}
	secret := func(data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Data: data}
	}
	for title, test := range map[string]struct {
		name   types.NamespacedName
		secret *corev1.Secret
		want   string
	}{
		"a good key":     {name, secret(map[string][]byte{"identity.key": pemOf(t, 1)}), ""},
		"no flag":        {types.NamespacedName{Namespace: "rollout-system"}, nil, "the controller has no key to sign with: start it with --signing-key-secret"},
		"no Secret":      {name, nil, "Secret rollout-system/signing does not exist: create it with the private key of this cluster as identity.key"},
		"no key":         {name, secret(map[string][]byte{"other.key": pemOf(t, 1)}), "Secret rollout-system/signing has no identity.key: add the private key of this cluster"},
		"something else": {name, secret(map[string][]byte{"identity.key": []byte("secret")}), "identity.key of Secret rollout-system/signing cannot be used: it is not a PRIVATE KEY in PEM"},
	} {
		t.Run(title, func(t *testing.T) {
			g, objects := NewWithT(t), fake.NewClientBuilder()
			if test.secret != nil {
				objects = objects.WithObjects(test.secret)
			}
			key, problem, err := NewKey(objects.Build(), test.name)(t.Context())
			g.Expect(err).NotTo(HaveOccurred())
			if test.want == "" {
				g.Expect(problem).To(BeNil())
				g.Expect(key.String()).To(Equal(keyOf(t, 1).String()))
				return
			}
			g.Expect(key).To(BeZero())
			want := &verdict.Problem{Reason: environmentsv1.SigningKeyMissingReason, Message: "the report is not published: " + test.want}
			g.Expect(cmp.Diff(want, problem)).To(BeEmpty())
		})
	}
	_, _, err := NewKey(failing(errAPI), name)(t.Context())
	NewWithT(t).Expect(err).To(MatchError(errAPI))
}

// failing returns a reader whose answers are an error.
func failing(err error) client.Reader {
	return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return err
		},
	})
}

func TestClusterUID(t *testing.T) {
	g := NewWithT(t)
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "5f2c"}}
	g.Expect(ClusterUID(fake.NewClientBuilder().WithObjects(system).Build())(t.Context())).To(Equal("5f2c"))
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "kube-system", errors.New("no"))
	g.Expect(ClusterUID(failing(forbidden))(t.Context())).To(BeEmpty())
	_, err := ClusterUID(failing(errAPI))(t.Context())
	g.Expect(err).To(MatchError(errAPI))
}
