// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	quarantines "github.com/fluxrollouts/rollout-controller/internal/controller/quarantine"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/internal/shard"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// quarantineOf returns the name of the ReleaseQuarantine of a tag.
func quarantineOf(tag string) string {
	name, _ := quarantine.Name(digestOf(tag))
	return name
}

// setUpQuarantines prepares what obeys quarantines, and what shows their state.
func (s *testEnv) setUpQuarantines(mgr ctrl.Manager, rollouts *Reconciler, part shard.Shard) {
	s.Expect(rollouts.WatchQuarantines()).To(Succeed())
	for _, cluster := range []bool{false, true} {
		r := &quarantines.Reconciler{Client: mgr.GetClient(), Now: s.Clock.Now, Cluster: cluster, Shard: part}
		s.Expect(r.SetupWithManager(mgr, controller.Options{MaxConcurrentReconciles: 4})).To(Succeed())
	}
}

// openReporting opens an env in which 1.0.0 has succeeded, and 1.1.0 is applied. Failures
// are reported.
func openReporting(t *testing.T, changes ...func(*fixture.RolloutBuilder)) *testEnv {
	t.Helper()
	rollout := protected().DeployTimeout(5 * time.Minute).RollsBack().Quarantine()
	for _, change := range changes {
		change(rollout)
	}
	s := open(t, shopWith(rollout, "1.0.0", fixture.MakeHealthCheck("web").Healthy().Obj())...)
	s.quarantines = true
	s.restart()
	s.deploy("shop")
	s.Pass(11 * time.Minute)
	s.deploy("shop")
	s.release("shop", "1.1.0")
	s.rest("shop")
	s.fluxApplies()
	s.rest("shop")
	s.Events.Take()
	s.Wire.Forget()
	return s
}

// failsNow lets the HealthCheck fail.
func (s *testEnv) failsNow() { s.checkFails("web", "down", s.Clock.Now()) }

// isBack lets the rollback succeed.
func (s *testEnv) isBack() {
	s.deploy("shop")
	s.Pass(11 * time.Minute)
	s.deploy("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{3, "1.0.0", v1alpha1.BakeSucceeded}))
}

// badQuarantine returns the ReleaseQuarantine of 1.1.0; nil if there is none.
func (s *testEnv) badQuarantine() *v1alpha1.ReleaseQuarantine {
	q := &v1alpha1.ReleaseQuarantine{}
	err := s.Get(s.Ctx, s.Key(quarantineOf("1.1.0")), q)
	if apierrors.IsNotFound(err) {
		return nil
	}
	s.Expect(err).NotTo(HaveOccurred())
	return q
}

// known returns the phase of the quarantine, and the history entries whose failures it lists.
func (s *testEnv) known() string {
	q := s.badQuarantine()
	s.Expect(q).NotTo(BeNil())
	text := string(q.Status.Phase)
	for _, failure := range q.Status.Failures {
		text += fmt.Sprintf(" #%d", failure.EntryID)
	}
	return text
}

// writesTo returns the writes that contain a text.
func (s *testEnv) writesTo(text string) []string {
	var all []string
	for _, write := range s.Wire.Writes() {
		if strings.Contains(write, text) {
			all = append(all, write)
		}
	}
	return all
}

func TestFailureIsReportedToAQuarantine(t *testing.T) {
	s, name := openReporting(t), quarantineOf("1.1.0")
	failed := s.Clock.Now()
	s.failsNow()
	s.reconcile("shop")
	s.Expect(s.Wire.Writes()).To(Equal([]string{
		"patch Rollout/status shop", "create ReleaseQuarantine " + name, "patch ReleaseQuarantine/status " + name,
	}))
	q := s.badQuarantine()
	s.Expect(q.Labels).To(Equal(map[string]string{
		v1alpha1.QuarantineDigestLabel: strings.TrimPrefix(name, "sha256-"), v1alpha1.ManagedByLabel: "rollout-controller",
	}))
	s.Expect(q.Spec).To(Equal(v1alpha1.ReleaseQuarantineSpec{
		Digest: digestOf("1.1.0"), Image: "registry.example.com/shop", Tags: []string{"1.1.0"},
	}))
	day := metav1.NewTime(failed.Add(24 * time.Hour).Local())
	s.Expect(q.Status).To(Equal(v1alpha1.ReleaseQuarantineStatus{
		ObservedGeneration: 1, Phase: v1alpha1.QuarantineHeld, Until: &day,
		Failures: []v1alpha1.ReleaseFailure{{
			Rollout: v1alpha1.ReportingRollout{Name: "shop", UID: s.rollout("shop").UID}, EntryID: 2, Time: metav1.NewTime(failed.Local()),
			Cause: v1alpha1.CauseHealthCheckFailed, Message: "HealthCheck " + s.Namespace + "/web: down",
		}},
	}))
	s.Expect(s.Events.Take()).To(ContainElement(fixture.Event{
		On: name, Type: corev1.EventTypeWarning, Reason: v1alpha1.ReleaseQuarantinedReason,
		Message: "1.1.0 failed on Rollout shop: HealthCheck " + s.Namespace + "/web: down",
	}))
	s.Expect(s.rollout("shop").Status.History[0].Quarantine).To(BeEmpty())
	s.Wire.Forget()
	s.reconcile("shop")
	s.Expect(s.writesTo("/status")).To(Equal([]string{"patch Rollout/status shop"}))
	history := s.rollout("shop").Status.History
	s.Expect(history[0].IsRollback()).To(BeTrue())
	s.Expect(history[1].Quarantine).To(Equal(name), "it is in the record of the rollback")
}

// Whether the rollback helps changes nothing.
func TestFailedReleaseIsHeldForHoldForAfterARollbackThatSucceeds(t *testing.T) {
	s := openReporting(t)
	failed := s.Clock.Now()
	s.failsNow()
	s.rest("shop")
	s.Wire.Forget()
	s.isBack()
	s.Expect(s.known()).To(Equal("Held #2"))
	s.Expect(s.badQuarantine().Status.Until.Time).To(BeTemporally("==", failed.Add(24*time.Hour)))
	s.Expect(s.writesTo("ReleaseQuarantine")).To(BeEmpty())
}

// Nobody knows that the release ran.
func TestDeadlineAloneIsNotReported(t *testing.T) {
	s := openReporting(t, func(b *fixture.RolloutBuilder) {
		b.RollsBack(func(r *v1alpha1.RolloutRollback) {
			r.Causes = []v1alpha1.FailureCause{v1alpha1.CauseDeployTimeout}
		})
	})
	s.release("shop", "1.2.0") // Flux never applies it
	s.Pass(11 * time.Minute)
	s.rest("shop")
	s.Pass(6 * time.Minute)
	s.rest("shop")
	history := s.rollout("shop").Status.History
	s.Expect(history[1].Cause).To(Equal(v1alpha1.CauseDeployTimeout))
	s.Expect(history[0].IsRollback()).To(BeTrue())
	s.Expect(s.writesTo("ReleaseQuarantine")).To(BeEmpty())
}

// addCart adds another Rollout, which runs 1.0.0, and offers it the content of 1.1.0 under
// another tag of another image.
func (s *testEnv) addCart() {
	s.Add(append(shopApart("cart"), fixture.MakeRollout("cart").Obj())...)
	s.rest("cart")
	s.fluxApplies()
	s.rest("cart")
	s.pushedAgain = map[string]string{"2.0.0": digestOf("1.1.0")}
	s.ChangeStatus(fixture.MakePolicy("cart").Obj(), func(o client.Object) {
		setLatest(o, "2.0.0")
		o.(*imagev1.ImagePolicy).Status.LatestRef.Digest = digestOf("1.1.0")
	})
	s.rest("cart")
}

// holdsOf returns the holds of the newest candidate.
func (s *testEnv) holdsOf(name string) []v1alpha1.CandidateHold {
	candidates := s.rollout(name).Status.ReleaseCandidates
	if len(candidates) == 0 {
		return nil
	}
	return candidates[0].Holds
}

func TestOtherRolloutsDoNotTakeWhatHasFailed(t *testing.T) {
	s := openReporting(t)
	s.failsNow()
	s.rest("shop")
	s.addCart()
	s.Expect(s.history("cart")).To(HaveLen(1))
	s.Expect(s.holdsOf("cart")).To(ConsistOf(And(
		HaveField("Reason", v1alpha1.QuarantinedReason),
		HaveField("Message", ContainSubstring("ReleaseQuarantine "+quarantineOf("1.1.0")+" until ")))))
	s.Pass(24 * time.Hour)
	s.rest("cart")
	s.Expect(s.history("cart")[0]).To(Equal(promoted{2, "2.0.0", v1alpha1.BakeDeploying}))
}

func TestQuarantineThatEndsWakesTheRolloutsThatItHolds(t *testing.T) {
	s := openReporting(t)
	s.failsNow()
	s.rest("shop")
	s.addCart()
	s.play(t, testPlane.RESTConfig())
	s.Eventually(func() []v1alpha1.CandidateHold { return s.holdsOf("cart") }).Should(HaveLen(1))
	s.Merge(s.badQuarantine(), `{"spec":{"lifted":true}}`)
	s.comesTo("cart", promoted{2, "2.0.0", v1alpha1.BakeDeploying})
	s.Eventually(func() v1alpha1.QuarantinePhase { return s.badQuarantine().Status.Phase }).Should(Equal(v1alpha1.QuarantineEnded))
}

func TestLiftedReleaseIsPromotedAgainWhereItFailed(t *testing.T) {
	s := openReporting(t)
	s.failsNow()
	s.rest("shop")
	s.isBack()
	s.Pass(time.Hour)
	s.rest("shop")
	s.Expect(s.history("shop")).To(HaveLen(3))
	s.Merge(s.badQuarantine(), `{"spec":{"lifted":true}}`)
	s.rest("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{4, "1.1.0", v1alpha1.BakeDeploying}))
}

func TestRetriedReleaseThatFailsAgainIsHeldAnew(t *testing.T) {
	s := openReporting(t, func(b *fixture.RolloutBuilder) {
		b.RollsBack(wait10Minutes)
	})
	s.failsNow()
	s.rest("shop")
	s.Expect(s.rollout("shop").Status.History[0].Quarantine).To(Equal(quarantineOf("1.1.0")))
	s.Pass(time.Minute)
	s.ask(v1alpha1.RetryAnnotation, "")
	s.rest("shop")
	s.Expect(s.history("shop")[0].State).To(Equal(v1alpha1.BakeDeploying))
	s.Expect(s.rollout("shop").Status.History[0].Quarantine).To(BeEmpty())
	s.Pass(time.Minute)
	failedAgain := s.Clock.Now()
	s.failsNow()
	s.rest("shop")
	s.Expect(s.known()).To(Equal("Held #2 #2"))
	s.Expect(s.badQuarantine().Status.Until.Time).To(BeTemporally("==", failedAgain.Add(24*time.Hour)))
}

// deleteQuarantine deletes the ReleaseQuarantine as a user does.
func (s *testEnv) deleteQuarantine() { s.Remove(&v1alpha1.ReleaseQuarantine{}, quarantineOf("1.1.0")) }

func TestDeletedQuarantineIsNotCreatedAgain(t *testing.T) {
	t.Parallel()
	for name, reach := range map[string]func(*testEnv){
		"before the history names it": func(s *testEnv) { s.reconcile("shop") },
		"during the rollback":         func(s *testEnv) { s.rest("shop") },
		"after the rollback":          func(s *testEnv) { s.rest("shop"); s.isBack() },
	} {
		t.Run(name, func(t *testing.T) {
			s := openReporting(t)
			s.failsNow()
			reach(s)
			s.deleteQuarantine()
			s.rest("shop")
			s.isBack()
			s.Expect(s.badQuarantine()).To(BeNil())
			s.Expect(s.writesTo("create ReleaseQuarantine")).To(HaveLen(1))
			s.restart()
			s.rest("shop")
			s.Expect(s.badQuarantine()).To(BeNil())
		})
	}
}

func TestQuarantineIsCreatedAgainIfTheHistoryHasLostIt(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		after time.Duration
		again bool
	}{
		"within an hour": {59 * time.Minute, true},
		"not later":      {61 * time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := openReporting(t)
			s.failsNow()
			s.rest("shop")
			s.deleteQuarantine()
			s.rest("shop")
			s.Pass(tt.after)
			s.upstreamUpdates(nil) // an older client
			s.rest("shop")
			s.Expect(s.badQuarantine() != nil).To(Equal(tt.again))
			if tt.again {
				s.Expect(s.known()).To(Equal("Held #2"))
			}
		})
	}
}

// An older client writes the history while the quarantine exists.
func TestFailureThatTheHistoryHasLostIsNotReportedTwice(t *testing.T) {
	s := openReporting(t)
	s.failsNow()
	s.rest("shop")
	s.upstreamUpdates(nil)
	s.restart()
	s.rest("shop")
	s.Expect(s.known()).To(Equal("Held #2"))
	s.Expect(s.rollout("shop").Status.History[1].Quarantine).To(Equal(quarantineOf("1.1.0")))
}

// TestQuarantinesThatCannotBeReadHoldCandidatesOnly: a rollback goes on.
func TestQuarantinesThatCannotBeReadHoldCandidatesOnly(t *testing.T) {
	s := openReporting(t)
	refuse := true
	s.reads = func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if _, ok := list.(*v1alpha1.ReleaseQuarantineList); ok && refuse {
					return apierrors.NewForbidden(schema.GroupResource{Resource: "releasequarantines"}, "", nil)
				}
				return c.List(ctx, list, opts...)
			},
		})
	}
	s.restart()
	s.failsNow()
	fails := func() {
		_, err := s.try("shop")
		s.Expect(err).To(MatchError(ContainSubstring("list ReleaseQuarantines")), "it is tried again")
	}
	for range 4 {
		fails()
	}
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.0.0"))
	s.Expect(s.badQuarantine()).To(BeNil(), "nobody knows whether it was reported")
	refuse = false
	s.rest("shop")
	s.Expect(s.known()).To(Equal("Held #2"))

	refuse = true
	s.release("shop", "1.2.0")
	s.fluxApplies()
	s.checksSay(v1alpha1.HealthStatusHealthy)
	for range 4 {
		fails()
		s.checksSay(v1alpha1.HealthStatusHealthy)
	}
	s.Pass(11 * time.Minute)
	for range 4 {
		fails()
	}
	s.Expect(s.history("shop")[0]).To(Equal(promoted{3, "1.0.0", v1alpha1.BakeSucceeded}))
	s.Expect(s.holdsOf("shop")).To(ContainElement(And(HaveField("Reason", v1alpha1.QuarantineListFailedReason),
		HaveField("Message", "the quarantines could not be read: Forbidden"))))

	refuse = false
	s.rest("shop")
	s.Expect(s.known()).To(Equal("Held #2"))
	s.Expect(s.history("shop")[0]).To(Equal(promoted{4, "1.2.0", v1alpha1.BakeDeploying}))
}

func TestAPIServerTakesTheQuarantineOfARolloutOrSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		block     string
		rejection string // empty if it is accepted
	}{
		"the smallest":               {"{}", ""},
		"everything":                 {"{report: Namespace, obey: false, holdFor: 24h}", ""},
		"the shortest":               {"{holdFor: 3600s}", ""},
		"the longest":                {"{holdFor: 8760h}", ""},
		"a shorter time":             {"{holdFor: 59m}", "must be from 1h to 8760h"},
		"a longer time":              {"{holdFor: 8760h1s}", "must be from 1h to 8760h"},
		"a time that Go cannot hold": {"{holdFor: 99999999999999999999h}", "spec.quarantine.holdFor"},
		"days":                       {"{holdFor: 1d}", "spec.quarantine.holdFor"},
		"reports to everybody":       {"{report: Cluster}", "spec.quarantine.report"},
		"a field that is none":       {"{obeys: true}", "obeys"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			err := s.apply(s.manifest("{releasesImagePolicy: {name: shop}, quarantine: " + tt.block + "}"))
			if tt.rejection == "" {
				s.Expect(err).NotTo(HaveOccurred())
				return
			}
			s.Expect(err).To(MatchError(ContainSubstring(tt.rejection)))
		})
	}
}
