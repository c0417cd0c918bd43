// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestCandidatesAndGatesAreShownInEachState(t *testing.T) {
	t.Parallel()
	for _, state := range statesOfABake {
		if state.name == "nothing promoted yet" {
			continue // the release would be promoted at once
		}
		t.Run(state.name, func(t *testing.T) {
			s := openBake(t)
			state.reach(s)
			entries := s.history("shop")
			s.Add(fixture.MakeGate("late", "shop").Allow("1.5.0").Obj())
			s.Add(fixture.MakeGate("shut", "shop").Closed().Obj())
			s.release("shop", "1.5.0")
			s.rest("shop")
			s.Expect(s.history("shop")).To(Equal(entries))
			s.Expect(s.rollout("shop").Status.ReleaseCandidates[0].Tag).To(Equal("1.5.0"))
			s.Expect(s.rollout("shop").Status.GatedReleaseCandidates).To(BeEmpty())
			s.Expect(s.rollout("shop").Status.Gates).To(ContainElement(v1alpha1.RolloutGateStatusSummary{
				Name: "late", Passing: yes(), AllowedVersions: []string{"1.5.0"}, Message: "lets 1 version through"}))

			if s.rollout("shop").Current().State() == v1alpha1.BakeSucceeded {
				return // only gates hold it
			}
			s.Expect(s.DeleteAllOf(s.Ctx, &v1alpha1.RolloutGate{}, client.InNamespace(s.Namespace))).To(Succeed())
			s.rest("shop")
			s.Expect(s.rollout("shop").Status.GatedReleaseCandidates[0].Tag).To(Equal("1.5.0"))
			s.Expect(s.history("shop")).To(Equal(entries), "something else holds it")
		})
	}
}

func TestDeploymentBlockedShowsHealthWhateverElseHolds(t *testing.T) {
	s := open(t, shopWith(baked(), "1.0.0", fixture.MakeHealthCheck("smoke").Obj())...)
	s.deployAndBake("shop")
	blocked := func() condition {
		s.rest("shop")
		c := s.condition("shop", v1alpha1.DeploymentBlockedCondition)
		c.Message = ""
		return c
	}
	unhealthy := condition{metav1.ConditionTrue, v1alpha1.UnhealthyHealthChecksReason, ""}
	well := condition{metav1.ConditionFalse, v1alpha1.HealthChecksHealthyReason, ""}
	byHand := condition{metav1.ConditionFalse, v1alpha1.ManualDeploymentReason, ""}
	s.Expect(blocked()).To(Equal(well))
	s.Add(fixture.MakeGate("shut", "shop").Closed().Obj())
	s.release("shop", "1.1.0")
	s.checkFails("smoke", "broken", s.Clock.Now())
	s.Expect(blocked()).To(Equal(unhealthy), "also while a gate holds")
	s.pinTo("1.0.0")
	s.Expect(blocked()).To(Equal(byHand), "a pin does not heed it")
	s.pin("shop", nil)
	s.Expect(blocked()).To(Equal(unhealthy))
	s.checksSay(v1alpha1.HealthStatusPending)
	s.Expect(blocked()).To(Equal(well), "clears while the gate holds still")
	s.checksSay(v1alpha1.HealthStatusUnhealthy)
	s.Expect(blocked()).To(Equal(unhealthy))
	s.ask(v1alpha1.ForceDeployAnnotation, "1.1.0")
	s.rest("shop")
	s.Expect(s.carried("shop")["tag"]).To(Equal("1.1.0"), "nor does a force")
}

// TestReadErrorsAreShownAndTriedAgain makes one kind of read fail at a time.
func TestReadErrorsAreShownAndTriedAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		broken func(client.Object, client.ObjectList) bool
		reason string
	}{
		"the ImagePolicy": {func(o client.Object, _ client.ObjectList) bool {
			_, is := o.(*imagev1.ImagePolicy)
			return is
		}, v1alpha1.RolloutFailedReason},
		"the gates": {func(_ client.Object, l client.ObjectList) bool {
			_, is := l.(*v1alpha1.RolloutGateList)
			return is
		}, v1alpha1.GateListFailedReason},
		"the HealthChecks": {func(_ client.Object, l client.ObjectList) bool {
			_, is := l.(*v1alpha1.HealthCheckList)
			return is
		}, v1alpha1.HealthCheckListFailedReason},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopWith(baked(), "1.0.0", fixture.MakeHealthCheck("smoke").Obj())...)
			s.deployAndBake("shop")
			s.release("shop", "1.1.0")
			s.failReads(tt.broken)
			for range 3 {
				_, err := s.try("shop")
				s.Expect(err).To(MatchError(ContainSubstring("out of order")), "it is tried again, ever more rarely")
			}
			s.Expect(s.history("shop")).To(HaveLen(1), "what cannot be read holds releases back")
			s.Expect(s.condition("shop", v1alpha1.ReadyCondition)).To(And(
				HaveField("Status", metav1.ConditionFalse), HaveField("Reason", tt.reason)))

			s.failReads(nil)
			s.deployAndBake("shop")
			s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded}))
			s.Expect(s.ready()).To(Equal(condition{metav1.ConditionTrue, v1alpha1.BakeTimePassedReason, ""}))
			for _, c := range s.rollout("shop").Status.Conditions {
				s.Expect(c.ObservedGeneration).To(Equal(s.rollout("shop").Generation), c.Type)
			}
		})
	}
}

// failReads makes some reads fail; nil lets all succeed.
func (s *testEnv) failReads(broken func(client.Object, client.ObjectList) bool) {
	s.reads = func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if broken != nil && broken(o, nil) {
					return errors.New("out of order")
				}
				return c.Get(ctx, key, o, opts...)
			},
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if broken != nil && broken(nil, list) {
					return errors.New("out of order")
				}
				return c.List(ctx, list, opts...)
			},
		})
	}
	s.restart()
}

func TestOrderOfACacheIsNoChange(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").SelectAllChecks(), "1.0.0",
		fixture.MakeHealthCheck("a").Obj(), fixture.MakeHealthCheck("b").Obj(),
		fixture.MakeGate("a", "shop").Closed().Obj(), fixture.MakeGate("b", "shop").Closed().Obj(),
		fixture.MakeRepository("a").DrivenBy("shop").Obj(), fixture.MakeRepository("b").DrivenBy("shop").Obj())...)
	s.deploy("shop")
	s.release("shop", "1.1.0")
	s.checksSay(v1alpha1.HealthStatusUnhealthy)
	s.rest("shop")
	before := s.rollout("shop").Status
	s.reads = func(c client.WithWatch) client.WithWatch {
		return interceptor.NewClient(c, interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if err := c.List(ctx, list, opts...); err != nil {
					return err
				}
				items, err := apimeta.ExtractList(list)
				slices.Reverse(items)
				return errors.Join(err, apimeta.SetList(list, items))
			},
		})
	}
	s.restart()
	s.Wire.Forget()
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(BeEmpty())
	s.Expect(s.rollout("shop").Status).To(Equal(before))
}

func TestTagThatIsPushedAgainIsReportedOnceAndPromotesNothing(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	digest := func(of string) {
		s.ChangeStatus(fixture.MakePolicy("shop").Obj(), func(o client.Object) { o.(*imagev1.ImagePolicy).Status.LatestRef.Digest = of })
		s.deploy("shop")
	}
	digest("sha256:aaa")
	s.Events.Take()
	digest("sha256:bbb")
	s.Expect(s.Events.Take()).To(Equal([]fixture.Event{{On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.TagMovedReason,
		Message: "tag 1.0.0 was pushed again: it moved from sha256:aaa to sha256:bbb"}}))
	s.Expect(*s.rollout("shop").Status.AvailableReleases[0].Digest).To(Equal("sha256:bbb"))
	s.Expect(s.history("shop")).To(HaveLen(1))
}

func TestCheckThatRecoversLetsARolloutGoOnThatOnlySelectsIt(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").SelectAllChecks(), "1.0.0", fixture.MakeHealthCheck("web").Obj())...)
	s.deploy("shop")
	s.checkFails("web", "broken", fixture.Noon)
	s.release("shop", "1.1.0")
	s.rest("shop")
	s.play(t, testPlane.RESTConfig())
	s.Consistently(func() []promoted { return s.history("shop") }, time.Second).Should(HaveLen(1))
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.comesTo("shop", promoted{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeDeploying})
}

// The end of the message of a failed bake.
const (
	noWayBack = "no good release is known; pin another one with spec.wantedVersion, or annotate with retry or unblock-failed"
	wayBack   = "; roll back with spec.wantedVersion, or annotate with retry or unblock-failed"
)

func TestFailedBakeSaysHowToGoOn(t *testing.T) {
	s := open(t, shopWith(baked(), "1.0.0", fixture.MakeHealthCheck("smoke").Obj())...)
	s.deployAndBake("shop")
	s.release("shop", "1.1.0")
	s.Events.Take()
	s.fail()
	said := "1.1.0: HealthCheck " + s.Namespace + "/smoke: it does not answer; last good release: 1.0.0" + wayBack
	for _, kind := range []string{v1alpha1.ReadyCondition, v1alpha1.StalledCondition} {
		c := s.condition("shop", kind)
		s.Expect(condition{"", c.Reason, c.Message}).To(Equal(condition{"", v1alpha1.BakeTimeFailedReason, said}), kind)
	}
	s.Expect(s.Events.Take()).To(ContainElement(
		fixture.Event{On: "shop", Type: corev1.EventTypeWarning, Reason: v1alpha1.BakeTimeFailedReason, Message: said}))

	s.release("shop", "1.1.1")
	s.checksSay(v1alpha1.HealthStatusHealthy)
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Message).To(Equal(said + "; 1.1.1 waits for that"))
	s.Add(fixture.MakeGate("manual", "shop").Closed().Obj())
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Message).To(Equal(said + "; 1.1.1 waits: not passing: RolloutGate manual"))
}
