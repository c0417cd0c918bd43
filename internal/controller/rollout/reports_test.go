// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"crypto/rand"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
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
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/registry/fetch"
	signed "github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/fixture/loopback"
)

// reported is a test env in which the upstream of production is in another cluster. The
// test writes its report, and the record of it in the Environment of production.
type reported struct {
	*environments
	in       *registry.Reports
	key      signed.SigningKey
	host     string
	sequence int64
	requests atomic.Int64
	away     atomic.Bool
	hangs    atomic.Pointer[chan struct{}] // nil: it answers
}

func openReported(t *testing.T) *reported {
	t.Helper()
	s := &reported{}
	inner := ociregistry.New(ociregistry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if until := s.hangs.Load(); until != nil {
			<-*until
		}
		if s.away.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.host = strings.TrimPrefix(server.URL, "http://")
	s.environments = openEnvironments(t, fixture.MakeEnvironment("prod").After("staging", fixture.Remote("staging-eu"), func(u *environmentsv1.Upstream) {
		u.Repository = s.host + "/promotions/staging"
	}).With(func(spec *environmentsv1.EnvironmentSpec) {
		spec.Backend = environmentsv1.Backend{Type: environmentsv1.BackendOCI, Insecure: true}
	}))
	var err error
	s.key, err = signed.Generate(signed.Ed25519, rand.Reader)
	s.Expect(err).NotTo(HaveOccurred())
	public, err := s.key.PublicPEM()
	s.Expect(err).NotTo(HaveOccurred())
	s.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "trusted-keys"}, Data: map[string][]byte{"any.pub": public}})
	reader, err := registry.NewReader(s.WithWatch, s.WithWatch, loopback.Guard())
	s.Expect(err).NotTo(HaveOccurred())
	s.in = registry.NewReports(reader)
	s.look(t)
	return s
}

// look begins to read reports, with a memory of nothing.
func (s *reported) look(t *testing.T) {
	t.Helper()
	s.reconciler.Reports = fetch.New(s.WithWatch, s.in.Pull, fetch.NewKeys(s.WithWatch, s.Key("trusted-keys")), fetch.NewPlace(s.WithWatch), logr.Discard())
	store := s.reconciler.Reports
	ctx, stop := context.WithCancel(s.Ctx)
	ended := make(chan error, 1)
	go func() { ended <- store.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		s.Expect(<-ended).To(Succeed())
	})
}

// says returns what the report of staging says. The first release is current.
func says(entries ...*fixture.EntryBuilder) []environmentsv1.Release {
	rollout := fixture.MakeRollout("staging").Obj()
	for i, entry := range entries {
		rollout.Status.History = append(rollout.Status.History, entry.ID(int64(len(entries)-i)).Obj())
	}
	return environment.Record(environment.View{Rollout: rollout}, fixture.Noon)
}

// publish stores a report in the registry.
func (s *reported) publish(releases []environmentsv1.Release) {
	s.sequence++
	envelope, err := signed.Sign(signed.Report{
		Source:   signed.Source{Application: "shop", Environment: "staging", Cluster: "staging-eu", Namespace: "shop", Rollout: "staging"},
		Sequence: s.sequence, Created: metav1.Time{Time: fixture.Noon}, Releases: releases,
	}, s.key)
	s.Expect(err).NotTo(HaveOccurred())
	_, err = s.in.Push(s.Ctx, registry.Place{
		Repository: s.host + "/promotions/staging", Tag: signed.Tag("shop", "staging"), Insecure: true, Namespace: s.Namespace,
	}, envelope, "")
	s.Expect(err).NotTo(HaveOccurred())
	s.requests.Store(0)
}

// recorded stores what the Environment of production knows of the report.
func (s *reported) recorded(releases []environmentsv1.Release) {
	for i := range releases {
		releases[i].HealthySince = nil // it is not on the wire
	}
	s.ChangeStatus(&environmentsv1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}, func(o client.Object) {
		e := o.(*environmentsv1.Environment)
		e.Status.Upstreams = environment.Upstreams(e.Status.Upstreams, []environmentsv1.UpstreamStatus{{
			Environment: "staging", Source: environment.SourceOf(e, e.GetUpstreams()[0]), Sequence: max(1, s.sequence),
			ObservedDigest: environment.Observed(max(1, s.sequence), releases), Releases: releases,
		}}, s.Clock.Now())
	})
}

// looked waits until the registry was asked.
func (s *reported) looked() {
	s.Eventually(s.requests.Load).WithPolling(10 * time.Millisecond).Should(BeNumerically(">", 0))
	prod := fetch.Upstream{Environment: s.Key("prod"), Name: "staging"}
	s.Eventually(func() bool { _, looked := s.reconciler.Reports.Last(prod); return looked }).WithPolling(10 * time.Millisecond).Should(BeTrue())
}

// waitsForAFetch checks that a pass promotes nothing and writes nothing.
func (s *reported) waitsForAFetch() {
	s.Wire.Forget()
	s.Expect(s.reconcile("shop")).To(Equal(ctrl.Result{RequeueAfter: recheckWithin}))
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.Expect(s.runs()).To(Equal("1.0.0"))
}

func TestReportIsLookedAtWhileAReleaseWaits(t *testing.T) {
	s := openReported(t)
	s.publish(says(there("1.1.0").Deploying(), there("1.0.0").Succeeded().BakeEnd(fixture.Noon)))
	s.recorded(says(there("1.0.0").Succeeded().BakeEnd(fixture.Noon)))
	s.rest("shop")
	s.Consistently(s.requests.Load).WithTimeout(200*time.Millisecond).Should(BeZero(), "nothing waits")

	s.knows("1.1.0")
	s.held(environmentsv1.UpstreamPendingReason, "waits for staging, which runs 1.0.0")
	s.looked()
	s.recorded(says(there("1.1.0").Deploying(), there("1.0.0").Succeeded().BakeEnd(fixture.Noon)))
	s.held(environmentsv1.UpstreamPendingReason, "waits for staging: Flux applies it there since 2026-03-02T12:00:00Z")
}

func TestReleaseGoesOnceItsProofWasLookedAt(t *testing.T) {
	s := openReported(t)
	proven := says(there("1.1.0").Succeeded().BakeEnd(fixture.Noon))
	s.publish(proven)
	s.recorded(proven)
	s.knows("1.1.0")
	s.waitsForAFetch()
	s.looked()
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.1.0"))
}

// A registry that does not answer holds the look, and no pass.
func TestHungRegistryHoldsNoPass(t *testing.T) {
	s := openReported(t)
	proven := says(there("1.1.0").Succeeded().BakeEnd(fixture.Noon))
	s.publish(proven)
	s.recorded(proven)
	s.knows("1.1.0")
	until := make(chan struct{})
	answer := sync.OnceFunc(func() { close(until) })
	t.Cleanup(answer)
	s.hangs.Store(&until)
	s.waitsForAFetch()
	s.Eventually(s.requests.Load).Should(BeNumerically(">", 0))
	s.waitsForAFetch()
	answer()
	s.looked()
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.1.0"))
}

func TestProofThatNoLongerHoldsPromotesNothing(t *testing.T) {
	t.Parallel()
	proven := func() []environmentsv1.Release { return says(there("1.1.0").Succeeded().BakeEnd(fixture.Noon)) }
	for name, test := range map[string]struct {
		now     func(*reported)
		reason  string
		message string
	}{
		"it has failed there since": {
			func(s *reported) {
				s.publish(says(there("1.1.0").Failed().BakeEnd(fixture.Noon).Because("3 of 9 tests fail")))
			},
			environmentsv1.UpstreamFailedReason, "1.1.0 failed in staging: 3 of 9 tests fail",
		},
		"staging went back": {
			func(s *reported) {
				s.publish(says(there("1.0.0").Succeeded().BakeEnd(fixture.Noon).By(v1alpha1.TriggeredByUser, "alice"),
					there("1.1.0").Succeeded().BakeEnd(fixture.Noon), there("1.0.0").Succeeded().BakeEnd(fixture.Noon)))
			},
			environmentsv1.UpstreamWithdrawnReason, "1.1.0 no longer counts in staging, which went back to 1.0.0, by alice",
		},
		"the registry is away": {
			func(s *reported) { s.away.Store(true) },
			environmentsv1.UpstreamUnknownReason, "the report of staging cannot be read: the registry answers 502 Bad Gateway",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openReported(t)
			s.publish(proven())
			s.recorded(proven())
			test.now(s)
			s.knows("1.1.0")
			s.waitsForAFetch()
			s.looked()
			s.held(test.reason, test.message)
		})
	}
}

func TestLookThatWasTooLongAgoPromotesNothing(t *testing.T) {
	s := openReported(t)
	baking := says(there("1.1.0").Baking(fixture.Noon))
	s.publish(baking)
	s.recorded(baking)
	s.knows("1.1.0")
	s.held(environmentsv1.UpstreamPendingReason, "waits for staging: it bakes there since 2026-03-02T12:00:00Z")
	s.looked()

	// What is recorded says that it is proven, and the last look is from before that.
	s.recorded(says(there("1.1.0").Succeeded().BakeEnd(fixture.Noon)))
	s.Pass(time.Since(s.Clock.Now()) + 61*time.Second) // looks are measured by the real clock
	s.waitsForAFetch()
}

func TestReportIsLookedAtForEachNewRelease(t *testing.T) {
	s := openReported(t)
	baking := says(there("1.1.0").Baking(fixture.Noon))
	baking[0].Until = &metav1.Time{Time: time.Now().Add(time.Hour).Truncate(time.Second)}
	s.publish(baking)
	s.recorded(baking)
	s.knows("1.1.0")
	s.rest("shop")
	s.looked()
	s.requests.Store(0)
	s.Pass(time.Hour)
	s.rest("shop")
	s.Consistently(s.requests.Load).WithTimeout(200*time.Millisecond).Should(BeZero(), "it is known when the bake ends")

	s.knows("1.2.0")
	s.rest("shop")
	s.Eventually(s.requests.Load).WithTimeout(20*time.Second).Should(BeNumerically(">", 0), "the bake may have failed, and this is the fix")
}

func TestReportIsLookedAtWhenABakeEnds(t *testing.T) {
	s := openReported(t)
	proven := says(there("1.1.0").Succeeded().BakeEnd(fixture.Noon))
	s.publish(proven)
	s.recorded(proven)
	s.knows("1.1.0")
	s.waitsForAFetch()
	s.looked()
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.1.0"))
	s.requests.Store(0)
	s.rest("shop")
	s.Consistently(s.requests.Load).WithTimeout(200 * time.Millisecond).Should(BeZero())

	s.deploy("shop")
	s.Expect(s.rollout("shop").Current().State()).To(Equal(v1alpha1.BakeSucceeded))
	s.Eventually(s.requests.Load).WithTimeout(20 * time.Second).Should(BeNumerically(">", 0))
}
