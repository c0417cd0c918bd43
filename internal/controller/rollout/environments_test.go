// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// environments is a test env in which the Rollout shop runs 1.0.0, and an Environment lets
// it take what staging has proven.
type environments struct {
	*testEnv
	reads []string // past the cache, of Rollouts
}

func openEnvironments(t *testing.T, prod *fixture.EnvironmentBuilder, more ...client.Object) *environments {
	t.Helper()
	s := &environments{testEnv: open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)}
	s.knows("1.0.0")
	s.deploy("shop")
	s.Add(fixture.MakeRollout("staging").Obj(), fixture.MakeEnvironment("staging").Obj(), prod.Of("shop").Observed().Obj())
	s.Add(more...)
	s.Wire.Forget()
	s.Events.Take()
	s.notifications.Take()
	return s
}

func production() *fixture.EnvironmentBuilder {
	return fixture.MakeEnvironment("prod").After("staging")
}

// knows makes the ImagePolicy name a release with its digest.
func (s *environments) knows(tag string) {
	s.release("shop", tag)
	s.ChangeStatus(fixture.MakePolicy("shop").Obj(), func(o client.Object) {
		o.(*imagev1.ImagePolicy).Status.LatestRef.Digest = imageOf(tag)
	})
}

func imageOf(tag string) string {
	_, digest, _ := strings.Cut(fixture.Revision(tag), "@")
	return digest
}

func there(tag string) *fixture.EntryBuilder {
	return fixture.MakeEntry(tag).Version(fixture.MakeRelease(tag).Digest(imageOf(tag)).Obj()).At(fixture.Noon)
}

// stagingHas gives the Rollout of staging a history, newest first, and records it.
func (s *environments) stagingHas(entries ...*fixture.EntryBuilder) {
	s.stagingRolloutHas(entries...)
	s.stagingIsRecorded()
}

func (s *environments) stagingRolloutHas(entries ...*fixture.EntryBuilder) {
	s.ChangeStatus(&v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "staging"}}, func(o client.Object) {
		status := &o.(*v1alpha1.Rollout).Status
		status.History = nil
		for i, entry := range entries {
			status.History = append(status.History, entry.ID(int64(len(entries)-i)).Obj())
		}
	})
}

func (s *environments) stagingIsRecorded() {
	s.ChangeStatus(&environmentsv1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "staging"}}, func(o client.Object) {
		status := &o.(*environmentsv1.Environment).Status
		status.ObservedGeneration = 1
		status.Releases = environment.Record(environment.View{Rollout: s.rollout("staging"), Recorded: status.Releases}, s.Clock.Now())
	})
}

// prodHasSeen records in the Environment of production what staging says.
func (s *environments) prodHasSeen() {
	staging := &environmentsv1.Environment{}
	s.Expect(s.Get(s.Ctx, s.Key("staging"), staging)).To(Succeed())
	s.ChangeStatus(&environmentsv1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}, func(o client.Object) {
		status := &o.(*environmentsv1.Environment).Status
		status.Upstreams = environment.Upstreams(status.Upstreams, []environmentsv1.UpstreamStatus{{
			Environment: "staging", ObservedDigest: environment.Digest(staging.Status.Releases)}}, s.Clock.Now())
	})
}

// countReads records which Rollouts are read past the cache.
func (s *environments) countReads() {
	s.reconciler.APIReader = interceptor.NewClient(s.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			s.reads = append(s.reads, fmt.Sprintf("%T %s", o, key.Name))
			return c.Get(ctx, key, o, opts...)
		},
	})
}

func (s *environments) annotate(key, value string) {
	s.Change(&v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, func(o client.Object) {
		metav1.SetMetaDataAnnotation(&o.(*v1alpha1.Rollout).ObjectMeta, key, value)
	})
}

func (s *environments) runs() string { return s.rollout("shop").Current().Version.Tag }

// held checks that 1.1.0 is held, and that everybody is told the same.
func (s *environments) held(reason, message string) {
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.0.0"))
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition)).To(Equal(condition{metav1.ConditionFalse, reason, "1.1.0: " + message}))
	newest := s.rollout("shop").Status.ReleaseCandidates[0]
	s.Expect(newest.Holds).To(HaveLen(1))
	s.Expect(newest.Holds[0].Reason).To(Equal(reason))
	s.Expect(newest.Holds[0].Message).To(Equal(message))
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Message).To(ContainSubstring(message))
}

func TestProductionTakesWhatStagingHasProven(t *testing.T) {
	s := openEnvironments(t, production())
	s.countReads()
	s.stagingHas(there("1.0.0").Succeeded())
	s.knows("1.1.0")
	s.held(environmentsv1.UpstreamPendingReason, "waits for staging, which runs 1.0.0")
	s.Expect(s.rollout("shop").Status.Gates).To(ContainElement(v1alpha1.RolloutGateStatusSummary{
		Name: "environment/prod", Passing: new(true), AllowedVersions: []string{}, Message: "lets 0 of 1 candidate through",
	}))
	told := s.Events.Take()
	s.Expect(told).To(ContainElement(fixture.Event{On: "shop", Type: corev1.EventTypeWarning, Reason: environmentsv1.UpstreamPendingReason,
		Message: "1.1.0: waits for staging, which runs 1.0.0"}))

	s.stagingHas(there("1.1.0").Baking(fixture.Noon), there("1.0.0").Succeeded())
	s.held(environmentsv1.UpstreamPendingReason, "waits for staging: it bakes there since 2026-03-02T12:00:00Z")
	s.Wire.Forget()
	for range 3 {
		s.Pass(time.Hour)
		s.rest("shop")
	}
	s.Expect(s.Wire.Writes()).To(BeEmpty(), "a hold that does not change costs nothing")
	s.Expect(s.reads).To(BeEmpty(), "and asks nobody")

	s.stagingHas(there("1.1.0").Succeeded().BakeEnd(fixture.Noon), there("1.0.0").Succeeded())
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.1.0"))
	s.Expect(s.reads).To(Equal([]string{"*v1alpha1.Rollout staging"}), "one read more than without an upstream")
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition).Status).To(Equal(metav1.ConditionTrue))
}

func TestStagingWithoutTargetsProvesNothing(t *testing.T) {
	s := openEnvironments(t, production())
	s.knows("1.1.0")
	nothing := there("1.1.0").Succeeded().ProvenBy(0, 0).BakeStart(fixture.Noon).BakeEnd(fixture.Noon)
	s.stagingHas(nothing, there("1.0.0").Succeeded())
	s.held(environmentsv1.UpstreamPendingReason, "staging has not deployed 1.1.0: no Flux object there is annotated with its Rollout")

	s.ChangeStatus(&v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "staging"}}, func(o client.Object) {
		o.(*v1alpha1.Rollout).Status.Targets = []v1alpha1.TargetStatus{{Kind: "OCIRepository", Name: "shop", State: v1alpha1.TargetApplied}}
	})
	s.stagingIsRecorded()
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.1.0"))
}

func TestSoakEndsAtItsTime(t *testing.T) {
	s := openEnvironments(t, fixture.MakeEnvironment("prod").After("staging", fixture.Soak(2*time.Hour)))
	s.Pass(30 * time.Minute)
	s.stagingHas(there("1.1.0").Succeeded().BakeStart(fixture.Noon).BakeEnd(fixture.Noon.Add(30 * time.Minute)))
	s.knows("1.1.0")
	s.held(environmentsv1.UpstreamSoakingReason, "soaks in staging for 2h0m0s")
	s.prodHasSeen()
	s.held(environmentsv1.UpstreamSoakingReason, "soaks in staging for 2h0m0s, until 2026-03-02T14:00:00Z")
	s.Expect(s.reconcile("shop")).To(Equal(ctrl.Result{RequeueAfter: time.Hour}), "something must be heard by then")
	s.Pass(30 * time.Minute)
	s.stagingIsRecorded()
	s.prodHasSeen()
	s.held(environmentsv1.UpstreamSoakingReason, "soaks in staging for 2h0m0s, until 2026-03-02T14:00:00Z")
	s.Expect(s.reconcile("shop")).To(Equal(ctrl.Result{RequeueAfter: time.Hour}))

	s.Pass(time.Hour - 2*time.Second)
	s.restart()
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.0.0"))
	s.Pass(2 * time.Second)
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.1.0"))
}

func TestSoakStandsStillWhileNothingIsHeard(t *testing.T) {
	s := openEnvironments(t, fixture.MakeEnvironment("prod").After("staging", fixture.Soak(2*time.Hour)))
	s.Pass(30 * time.Minute)
	s.stagingHas(there("1.1.0").Succeeded().BakeStart(fixture.Noon).BakeEnd(fixture.Noon.Add(30 * time.Minute)))
	s.knows("1.1.0")
	s.prodHasSeen()
	silent := "soaks in staging for 2h0m0s; staging has not reported since 2026-03-02T12:30:00Z"
	for _, later := range []time.Duration{time.Hour, 12 * time.Hour} {
		s.Pass(later)
		s.restart()
		s.held(environmentsv1.UpstreamPendingReason, silent)
	}
	s.stagingIsRecorded() // its controller was away: only 30 minutes count
	s.prodHasSeen()
	s.held(environmentsv1.UpstreamSoakingReason, "soaks in staging for 2h0m0s, until 2026-03-03T03:00:00Z")
}

// Between the cache and the API server lies whatever upstream did last.
func TestStaleProofPromotesNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		now     []*fixture.EntryBuilder
		reason  string
		message string
	}{
		"it has failed there since": {
			[]*fixture.EntryBuilder{there("1.1.0").Failed().BakeEnd(fixture.Noon).Because("3 of 9 tests fail"), there("1.0.0").Succeeded()},
			environmentsv1.UpstreamFailedReason, "1.1.0 failed in staging: 3 of 9 tests fail",
		},
		"staging went back": {
			[]*fixture.EntryBuilder{there("1.0.0").Succeeded().By(v1alpha1.TriggeredByUser, "alice"), there("1.1.0").Succeeded(), there("1.0.0").Succeeded()},
			environmentsv1.UpstreamWithdrawnReason, "1.1.0 no longer counts in staging, which went back to 1.0.0, by alice",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := openEnvironments(t, production())
			s.stagingHas(there("1.1.0").Succeeded(), there("1.0.0").Succeeded())
			s.stagingRolloutHas(test.now...)
			s.knows("1.1.0")
			s.held(test.reason, test.message)
		})
	}
}

func TestStaleProofPromotesNothingForAUserEither(t *testing.T) {
	s := openEnvironments(t, production().With(func(spec *environmentsv1.EnvironmentSpec) { spec.Promotion = environmentsv1.PromoteManually }))
	s.stagingHas(there("1.1.0").Succeeded(), there("1.0.0").Succeeded())
	s.stagingRolloutHas(there("1.1.0").Failed().BakeEnd(fixture.Noon).Because("3 of 9 tests fail"), there("1.0.0").Succeeded())
	s.knows("1.1.0")
	s.annotate(v1alpha1.PromoteAnnotation, "1.1.0")
	s.held(environmentsv1.UpstreamFailedReason, "1.1.0 failed in staging: 3 of 9 tests fail")
}

func TestUpstreamThatIsUnhealthyNowPromotesNothing(t *testing.T) {
	s := openEnvironments(t, production(), fixture.MakeHealthCheck("smoke").Unhealthy().Obj())
	s.Change(&v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "staging"}}, func(o client.Object) {
		o.(*v1alpha1.Rollout).Spec.HealthCheckSelector = fixture.MakeRollout("staging").SelectAllChecks().Obj().Spec.HealthCheckSelector
	})
	s.stagingHas(there("1.1.0").Succeeded())
	s.knows("1.1.0")
	s.held(environmentsv1.UpstreamPendingReason, "waits for staging, where it is unhealthy: HealthCheck "+s.Namespace+"/smoke")
}

func TestUpstreamThatCannotBeReadNowPromotesNothing(t *testing.T) {
	s := openEnvironments(t, production())
	s.stagingHas(there("1.1.0").Succeeded())
	s.knows("1.1.0")
	s.reconciler.APIReader = interceptor.NewClient(s.WithWatch, interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return context.DeadlineExceeded
		},
	})
	_, err := s.try("shop")
	s.Expect(err).To(MatchError(ContainSubstring("confirm the upstream staging: ")))
	s.Expect(s.runs()).To(Equal("1.0.0"))
	s.restart()
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.1.0"))
}

func TestRolloutThatNamesAnEnvironmentWaitsForIt(t *testing.T) {
	s := &environments{testEnv: open(t, shopWith(fixture.MakeRollout("shop").Environment("prod"), "1.0.0")...)}
	s.knows("1.0.0")
	waits := func(message string) {
		s.rest("shop")
		s.Expect(s.rollout("shop").Current()).To(BeNil())
		s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition)).To(Equal(condition{
			metav1.ConditionFalse, environmentsv1.UpstreamUnknownReason, "1.0.0: " + message}))
	}
	waits("Environment prod, which spec.environmentRef names, does not exist or names another Rollout: create it, or correct one of the two")
	s.Add(fixture.MakeEnvironment("prod").Of("cart").Obj())
	waits("Environment prod, which spec.environmentRef names, does not exist or names another Rollout: create it, or correct one of the two")
	s.reconciler.late.environments.Store(false)
	waits("spec.environmentRef names an Environment, but the controller cannot read Environments here: " +
		"install their CRD, and grant the rights of the manager role")
	s.reconciler.late.environments.Store(true)
	s.Change(&environmentsv1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}, func(o client.Object) {
		o.(*environmentsv1.Environment).Spec.RolloutRef.Name = "shop"
	})
	waits("Environment prod has no status yet: the controller environment writes it, and needs the CRD of this version")
	s.ChangeStatus(&environmentsv1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}, func(o client.Object) {
		o.(*environmentsv1.Environment).Status.ObservedGeneration = 1
	})
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.0.0"), "it has no upstream")
}

func TestFirstReleaseWaitsForItsProof(t *testing.T) {
	s := &environments{testEnv: open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0",
		fixture.MakeRollout("staging").Obj(), fixture.MakeEnvironment("staging").Obj(), production().Of("shop").Observed().Obj())...)}
	s.knows("1.0.0")
	s.stagingHas()
	s.rest("shop")
	s.Expect(s.rollout("shop").Current()).To(BeNil())
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition).Message).To(Equal("1.0.0: waits for staging, which has no release yet"))
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition)).To(Equal(condition{
		metav1.ConditionFalse, environmentsv1.UpstreamPendingReason, "1.0.0 waits for staging, which has no release yet"}))
	s.knows("1.1.0")
	s.stagingHas(there("1.0.0").Succeeded())
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.0.0"), "the newest proven one")
}

func TestUpstreamInAnotherNamespace(t *testing.T) {
	s := &environments{testEnv: open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)}
	s.knows("1.0.0")
	s.deploy("shop")
	other := s.OpenNamespace(nil)
	staging := fixture.MakeRollout("staging").Obj()
	staging.Namespace = other
	staging.Status.History = []v1alpha1.DeploymentHistoryEntry{there("1.1.0").ID(1).Succeeded().Obj()}
	said := environment.Record(environment.View{Rollout: staging}, s.Clock.Now())
	s.Add(staging, fixture.MakeEnvironment("staging").InNamespace(other).Says(said...).Obj(),
		fixture.MakeEnvironment("prod").After("staging", fixture.From(other)).Of("shop").Observed().Obj())
	s.knows("1.1.0")
	s.held(environmentsv1.UpstreamUnknownReason, fmt.Sprintf("namespace %s has no Environment staging of application shop for Rollout staging "+
		"whose spec.accessFrom lets in namespace %s: create it there, or add the namespace", other, s.Namespace))

	e := &environmentsv1.Environment{}
	s.Expect(s.Get(s.Ctx, client.ObjectKey{Namespace: other, Name: "staging"}, e)).To(Succeed())
	e.Spec.AccessFrom = fixture.MakeEnvironment("staging").LetsIn(map[string]string{"kubernetes.io/metadata.name": s.Namespace}).Obj().Spec.AccessFrom
	s.Expect(s.Update(s.Ctx, e)).To(Succeed())
	s.reconciler.NoCrossNamespaceRefs = true
	s.held(environmentsv1.UpstreamUnknownReason, fmt.Sprintf(
		"the upstream staging is in namespace %s, but references across namespaces are not allowed: name one of this namespace", other))
	s.reconciler.NoCrossNamespaceRefs = false
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.1.0"))
}

func TestHotfixPassesWithItsReason(t *testing.T) {
	s := openEnvironments(t, production())
	s.stagingHas(there("1.0.0").Succeeded())
	s.knows("1.1.0")
	s.annotate(v1alpha1.BypassGatesAnnotation, "1.1.0")
	s.held(environmentsv1.UpstreamPendingReason, "waits for staging, which runs 1.0.0")
	refused := condition{metav1.ConditionFalse, environmentsv1.BypassNeedsReasonReason, "rollout.kuberik.com/bypass-gates lets 1.1.0 past " +
		"Environment prod only with a reason: annotate it again, together with rollout.kuberik.com/deploy-message"}
	s.Expect(s.condition("shop", v1alpha1.RequestAcceptedCondition)).To(Equal(refused))
	s.Expect(s.rollout("shop").Annotations).NotTo(HaveKey(v1alpha1.BypassGatesAnnotation), "it must not take effect later")
	s.annotate(v1alpha1.DeployMessageAnnotation, "INC-4711")
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.0.0"))

	s.annotate(v1alpha1.BypassGatesAnnotation, "1.1.0")
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.1.0"))
	s.Expect(*s.rollout("shop").Current().Message).To(ContainSubstring("INC-4711"))
	s.Expect(s.condition("shop", v1alpha1.RequestAcceptedCondition)).To(BeZero())
}

func TestReasonOfSomebodyElseIsNoneForABypass(t *testing.T) {
	s := openEnvironments(t, production())
	s.stagingHas(there("1.0.0").Succeeded())
	s.knows("1.1.0")
	s.patchAs("dashboard", `{"metadata":{"annotations":{"rollout.kuberik.com/deploy-message":"left over"}}}`)
	s.patchAs("on-call", `{"metadata":{"annotations":{"rollout.kuberik.com/bypass-gates":"1.1.0"}}}`)
	s.held(environmentsv1.UpstreamPendingReason, "waits for staging, which runs 1.0.0")
	s.Expect(s.condition("shop", v1alpha1.RequestAcceptedCondition).Reason).To(Equal(environmentsv1.BypassNeedsReasonReason))
	s.patchAs("on-call", `{"metadata":{"annotations":{"rollout.kuberik.com/bypass-gates":"1.1.0","rollout.kuberik.com/deploy-message":"INC-4711"}}}`)
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.1.0"))
	s.Expect(*s.rollout("shop").Current().Message).To(HaveSuffix("Environments bypassed manually: INC-4711"))
}

func TestEnvironmentThatDeniesABypass(t *testing.T) {
	s := openEnvironments(t, production().With(func(spec *environmentsv1.EnvironmentSpec) { spec.Bypass = environmentsv1.BypassDenied }))
	s.stagingHas(there("1.0.0").Succeeded())
	s.knows("1.1.0")
	s.annotate(v1alpha1.BypassGatesAnnotation, "1.1.0")
	s.annotate(v1alpha1.DeployMessageAnnotation, "INC-4711")
	s.held(environmentsv1.UpstreamPendingReason, "waits for staging, which runs 1.0.0")
	s.Expect(s.condition("shop", v1alpha1.RequestAcceptedCondition).Reason).To(Equal(environmentsv1.BypassDeniedReason))
	s.pin("shop", new("1.1.0"))
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.1.0"), "a pin is the choice of who may edit the Rollout")
}

func TestManualPromotion(t *testing.T) {
	s := openEnvironments(t, production().With(func(spec *environmentsv1.EnvironmentSpec) { spec.Promotion = environmentsv1.PromoteManually }))
	s.stagingHas(there("1.1.0").Succeeded())
	s.knows("1.1.0")
	s.held(environmentsv1.AwaitingPromotionReason, "Environment prod leaves promotions to users: annotate the Rollout with rollout.kuberik.com/promote: 1.1.0")
	s.annotate(v1alpha1.PromoteAnnotation, "1.1.0")
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.1.0"))
	s.Expect(s.rollout("shop").Annotations).NotTo(HaveKey(v1alpha1.PromoteAnnotation))
}

func TestProductionIsToldThatStagingWentBack(t *testing.T) {
	s := openEnvironments(t, production())
	s.stagingHas(there("1.0.0").Succeeded(), there("0.9.0").Succeeded())
	s.rest("shop")
	s.Expect(s.condition("shop", environmentsv1.UpstreamWithdrewCondition)).To(BeZero())
	s.Wire.Forget()

	s.stagingHas(there("0.9.0").Succeeded(), there("1.0.0").Succeeded(), there("0.9.0").Succeeded())
	s.rest("shop")
	const message = "1.0.0 no longer counts in staging, which went back to 0.9.0; it still runs here: pin an older version to roll back here, too"
	s.Expect(s.condition("shop", environmentsv1.UpstreamWithdrewCondition)).To(Equal(condition{
		metav1.ConditionTrue, environmentsv1.UpstreamWithdrewReason, message}))
	s.Expect(s.Events.Take()).To(Equal([]fixture.Event{{
		On: "shop", Type: corev1.EventTypeWarning, Reason: environmentsv1.UpstreamWithdrewReason, Message: message}}))
	sent := s.notifications.Take()
	s.Expect(sent).To(HaveLen(3), "for alerts on the Rollout, and on each target")
	for _, event := range sent {
		s.Expect(event.Severity).To(Equal(eventv1.EventSeverityError))
		s.Expect(event.Reason).To(Equal(environmentsv1.UpstreamWithdrewReason))
	}
	s.Expect(s.Wire.Writes()).To(Equal([]string{"patch Rollout/status shop"}), "nothing that is deployed changes")
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Status).To(Equal(metav1.ConditionTrue))

	s.rest("shop")
	s.Remove(&environmentsv1.Environment{}, "staging")
	s.rest("shop")
	s.Expect(s.condition("shop", environmentsv1.UpstreamWithdrewCondition).Message).To(Equal(message), "nobody says anything else")
	s.Add(fixture.MakeEnvironment("staging").Obj())
	s.stagingHas(there("1.0.0").Succeeded())
	s.rest("shop")
	s.Expect(s.condition("shop", environmentsv1.UpstreamWithdrewCondition)).To(BeZero())
	s.Expect(s.Events.Take()).To(BeEmpty())
}

func TestEnvironmentOfGitHubHoldsUntilItsGateSaysWhatIsAllowed(t *testing.T) {
	foreign := fixture.MakeEnvironment("prod").With(func(spec *environmentsv1.EnvironmentSpec) {
		spec.Backend = environmentsv1.Backend{Type: environmentsv1.BackendGitHub, Project: "shop/shop"}
		spec.Relationship = &environmentsv1.Relationship{Environment: "staging", Type: environmentsv1.After}
	})
	s := openEnvironments(t, foreign)
	s.knows("1.1.0")
	const missing = "Environment prod of type github has no RolloutGate with allowedVersions yet: its controller must write it"
	s.held(environmentsv1.UpstreamUnknownReason, missing)
	s.Add(fixture.MakeGate("github-prod", "shop").Obj())
	s.ChangeStatus(&environmentsv1.Environment{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}, func(o client.Object) {
		o.(*environmentsv1.Environment).Status.RolloutGateRef = &v1alpha1.LocalObjectReference{Name: "github-prod"}
	})
	s.held(environmentsv1.UpstreamUnknownReason, missing)
	s.Change(&v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Name: "github-prod"}}, func(o client.Object) {
		o.(*v1alpha1.RolloutGate).Spec.AllowedVersions = &[]string{"1.1.0"}
	})
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.1.0"))
	for _, write := range s.Wire.Writes() {
		s.Expect(write).NotTo(ContainSubstring("Environment"))
	}
}

// An environment without any release has nothing to protect, and one that is parallel to
// another waits for nobody.
func TestEnvironmentOfGitHubHoldsNeitherTheFirstReleaseNorInParallel(t *testing.T) {
	foreign := func(kind environmentsv1.RelationshipType) *fixture.EnvironmentBuilder {
		return fixture.MakeEnvironment("prod").With(func(spec *environmentsv1.EnvironmentSpec) {
			spec.Backend = environmentsv1.Backend{Type: environmentsv1.BackendGitHub, Project: "shop/shop"}
			spec.Relationship = &environmentsv1.Relationship{Environment: "staging", Type: kind}
		})
	}
	s := openEnvironments(t, foreign(environmentsv1.Parallel))
	s.knows("1.1.0")
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.1.0"))

	s = &environments{testEnv: open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0", foreign(environmentsv1.After).Of("shop").Observed().Obj())...)}
	s.knows("1.0.0")
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.0.0"))
}

func TestEnvironmentWakesItsRollout(t *testing.T) {
	s := &environments{testEnv: open(t, shopWith(fixture.MakeRollout("shop").Environment("prod"), "1.0.0",
		fixture.MakeRollout("staging").Obj(), fixture.MakeEnvironment("staging").Obj())...)}
	s.knows("1.0.0")
	s.stagingHas()
	s.play(t, testPlane.RESTConfig())
	said := func() string { return s.condition("shop", v1alpha1.GatesPassingCondition).Message }
	s.Eventually(said).Should(ContainSubstring("Environment prod, which spec.environmentRef names, does not exist"))
	s.Add(production().Of("shop").Observed().Obj())
	s.Eventually(said).Should(Equal("1.0.0: waits for staging, which has no release yet"))
	s.stagingHas(there("1.0.0").Succeeded())
	s.prodHasSeen()
	s.comesTo("shop", promoted{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying})
}

// Whoever applies a Rollout and its Environment together is not told of a hold that is
// over before anybody reads it.
func TestStatusOfANewEnvironmentIsWaitedForInSilence(t *testing.T) {
	s := openEnvironments(t, production())
	s.stagingHas(there("1.0.0").Succeeded())
	s.Remove(&environmentsv1.Environment{}, "prod")
	s.Pass(time.Since(fixture.Noon)) // the API server says when an object was created
	s.Add(production().Of("shop").Obj())
	s.knows("1.1.0")
	s.Wire.Forget()
	s.Expect(s.reconcile("shop")).To(Equal(ctrl.Result{RequeueAfter: gather.SettlesWithin}))
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.Pass(gather.SettlesWithin)
	s.held(environmentsv1.UpstreamUnknownReason,
		"Environment prod has no status yet: the controller environment writes it, and needs the CRD of this version")
}

// A proof is of content. A tag that is pushed again while its release waits has none.
func TestTagThatIsPushedAgainAfterItsProofWaits(t *testing.T) {
	gate := fixture.MakeGate("qa", "shop").Closed().Obj()
	s := openEnvironments(t, production(), gate)
	s.stagingHas(there("1.1.0").Succeeded(), there("1.0.0").Succeeded())
	s.knows("1.1.0")
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.GatesPassingCondition).Reason).To(Equal(v1alpha1.SomeGatesBlockingReason))

	s.reflects(otherContent)
	s.rest("shop")
	s.Expect(s.Delete(s.Ctx, gate)).To(Succeed())
	s.held(environmentsv1.UpstreamPendingReason, "waits for staging, which runs another image by the tag 1.1.0")
}

// Flux pulls the tag of a proven release, and gets other content: what was proven is not
// what runs.
func TestUnprovenContentAtThePullDoesNotBake(t *testing.T) {
	s := openEnvironments(t, production())
	s.stagingHas(there("1.1.0").Succeeded(), there("1.0.0").Succeeded())
	s.knows("1.1.0")
	s.reconcile("shop")
	s.reflects(otherContent) // as Flux does with digestReflectionPolicy Always
	s.pushAgain("1.1.0")
	s.deploy("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{
		{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeDeploying}, {ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded},
	}))
	message := "OCIRepository shop: has pulled 1.1.0 as " + otherContent + ", but the release is " + imageOf("1.1.0") + ", and this content is not proven: " +
		"waits for staging, which runs another image by the tag 1.1.0; push each release under a tag of its own, or pin another release with spec.wantedVersion"
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition)).To(Equal(condition{metav1.ConditionFalse, v1alpha1.DigestMismatchReason, message}))
	s.Expect(s.condition("shop", v1alpha1.StalledCondition)).To(Equal(condition{metav1.ConditionTrue, v1alpha1.DigestMismatchReason, message}))

	other := there("1.1.0").Version(fixture.MakeRelease("1.1.0").Digest(otherContent).Obj())
	s.stagingHas(other.Succeeded(), there("1.1.0").Succeeded(), there("1.0.0").Succeeded())
	s.rest("shop")
	s.Expect(s.contents()[:2]).To(Equal([]string{otherContent, imageOf("1.1.0")}))
	s.deploy("shop")
	s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 3, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}))
	s.Expect(s.condition("shop", v1alpha1.StalledCondition)).To(Equal(condition{}))
}

// The rule goes with its Environment.
func TestRolloutWithoutItsEnvironmentWaitsForNobody(t *testing.T) {
	s := openEnvironments(t, production())
	s.stagingHas(there("1.0.0").Succeeded())
	s.knows("1.1.0")
	s.held(environmentsv1.UpstreamPendingReason, "waits for staging, which runs 1.0.0")
	prod := s.Key("prod")
	s.Expect(s.Delete(s.Ctx, &environmentsv1.Environment{ObjectMeta: metav1.ObjectMeta{Namespace: prod.Namespace, Name: prod.Name}})).To(Succeed())
	s.rest("shop")
	s.Expect(s.runs()).To(Equal("1.1.0"))
}
