// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestZonesRollOneAfterTheOther(t *testing.T) {
	s := open(t, zone("zone-c", 2), zone("zone-a", 2), zone("zone-b", 2))
	s.play(t)
	s.release("2.0.0", "zone-c", "zone-b", "zone-a")
	s.runs("2.0.0", "zone-a", "zone-b", "zone-c")

	// The first set that the change reaches begins. It is finished before another one
	// begins, and no pod is replaced twice.
	took := s.guard.took()
	s.Expect(took).To(ConsistOf("zone-a-0", "zone-a-1", "zone-b-0", "zone-b-1", "zone-c-0", "zone-c-1"))
	for i := 0; i < 6; i += 2 {
		s.Expect(took[i+1]).To(Equal(took[i][:len("zone-a-")]+"1"), "in %v", took)
	}
	s.Eventually(func() []string { return reported(s.Events.All()) }).Should(ConsistOf(
		"zone-a RolloutStarted", "zone-b RolloutStarted", "zone-c RolloutStarted",
		"zone-a RolloutFinished", "zone-b RolloutFinished", "zone-c RolloutFinished",
	))
}

func TestPodsOfASetAreReplacedInNaturalOrderWithinTheBudget(t *testing.T) {
	s := open(t, zone("zone-a", 4, annotated(rolloutgroup.MaxUnavailableAnnotation, "2")))
	s.play(t)
	s.release("2.0.0", "zone-a")
	s.runs("2.0.0", "zone-a")
	s.Expect(s.guard.took()[:2]).To(Equal([]string{"zone-a-0", "zone-a-1"}))
	s.Expect(s.guard.took()).To(ConsistOf("zone-a-0", "zone-a-1", "zone-a-2", "zone-a-3"))
}

func TestNextZoneWaitsUntilPodsHaveBeenReadyForMinReadySeconds(t *testing.T) {
	s := open(t, zone("zone-a", 2, minReady(2)), zone("zone-b", 1))
	s.play(t)
	s.release("2.0.0", "zone-a")
	s.Eventually(s.guard.took).ShouldNot(BeEmpty())
	s.release("2.0.0", "zone-b")
	s.runs("2.0.0", "zone-a", "zone-b")
	s.Expect(s.guard.took()).To(Equal([]string{"zone-a-0", "zone-a-1", "zone-b-0"}), "the guard counts the seconds")
}

func TestPodIsReadyWhenItsConditionSaysSo(t *testing.T) {
	s := open(t, zone("zone-a", 1), zone("zone-b", 1))
	s.saysReady("zone-a-0", corev1.ConditionFalse) // as with an unmet readiness gate, although all containers are ready
	s.play(t)
	s.release("2.0.0", "zone-b")
	s.Eventually(func() []string { return reported(s.Events.All()) }).Should(ContainElement("zone-b RolloutBlocked"))
	s.Consistently(s.guard.took).Should(BeEmpty())
	s.saysReady("zone-a-0", corev1.ConditionTrue)
	s.runs("2.0.0", "zone-b")
}

// saysReady sets the condition Ready of a pod and leaves its containers as they are.
func (s *testEnv) saysReady(name string, status corev1.ConditionStatus) {
	pod := s.pod(name)
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			pod.Status.Conditions[i].Status = status
			pod.Status.Conditions[i].LastTransitionTime = metav1.Now()
		}
	}
	s.Expect(s.Status().Update(s.Ctx, pod)).To(Succeed())
}

func TestGoingBackReplacesThePodsOfTheAbandonedRevision(t *testing.T) {
	s := open(t, zone("zone-a", 3), zone("zone-b", 3))
	bad := s.broken("bad")
	untouched := []any{s.pod("zone-a-1").UID, s.pod("zone-a-2").UID, s.pod("zone-b-0").UID}
	s.play(t)
	s.release(bad, "zone-a")
	s.Eventually(func() map[string]string { return s.pods("zone-a") }).Should(HaveKeyWithValue("zone-a-0", bad+"~"))
	s.release("1.0.0", "zone-a")
	s.runs("1.0.0", "zone-a", "zone-b")
	s.Expect(s.guard.took()).To(Equal([]string{"zone-a-0", "zone-a-0"}))
	s.Expect([]any{s.pod("zone-a-1").UID, s.pod("zone-a-2").UID, s.pod("zone-b-0").UID}).To(Equal(untouched))
	s.Eventually(func() []string { return reported(s.Events.All()) }).Should(ContainElement("zone-a RolloutFinished"),
		"though there is no revision to promote")
}

func TestBrokenVersionStopsAtTheFirstPodAndItsFixGoesThrough(t *testing.T) {
	s := open(t, zone("zone-a", 2), zone("zone-b", 2))
	bad := s.broken("bad")
	s.play(t)
	s.release(bad, "zone-a", "zone-b")
	s.Eventually(func() []string { return reported(s.Events.All()) }).Should(ContainElement(HaveSuffix(" RolloutBlocked")))
	s.Eventually(func() string { return s.blocked("ingester") }).Should(Equal(rolloutgroup.PodsStuckReason))
	s.Consistently(s.guard.took).Should(HaveLen(1), "neither another pod nor the stuck one again")
	s.release("2.0.0", "zone-a", "zone-b")
	s.runs("2.0.0", "zone-a", "zone-b")
	s.Expect(s.guard.took()).To(HaveLen(5), "the stuck pod once more, and each of the others once")
	s.Expect(s.blocked("ingester")).To(BeEmpty())
}

func TestFixOfSetsThatNeverStartedGoesThrough(t *testing.T) {
	for name, policy := range map[string]appsv1.PodManagementPolicyType{
		"pods in parallel": appsv1.ParallelPodManagement,
		"pods in order":    appsv1.OrderedReadyPodManagement,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			bad := s.broken("bad")
			for _, set := range []string{"zone-a", "zone-b"} {
				s.create(zone(set, 2, version(bad), func(set *appsv1.StatefulSet) { set.Spec.PodManagementPolicy = policy }))
			}
			s.play(t)
			s.Eventually(func() map[string]string { return s.pods("zone-b") }).Should(HaveKeyWithValue("zone-b-0", bad+"~"))
			s.release("2.0.0", "zone-a", "zone-b")
			s.runs("2.0.0", "zone-a", "zone-b")
			s.Expect(s.guard.took()).To(Or(
				HaveExactElements("zone-a-0", "zone-a-1", "zone-b-0", "zone-b-1"),
				HaveExactElements("zone-b-0", "zone-b-1", "zone-a-0", "zone-a-1"),
				HaveExactElements("zone-a-0", "zone-b-0"),
				HaveExactElements("zone-b-0", "zone-a-0"),
			), "one set after the other")
		})
	}
}

func TestSetThatGrowsOrShrinksIsNotReady(t *testing.T) {
	t.Run("new pods are on their way", func(t *testing.T) {
		s := open(t)
		v := "1-" + s.Namespace
		s.add(zone("zone-a", 1, version(v)), zone("zone-b", 1))
		s.broken("1")
		s.change("zone-a", scaled(2))
		s.Eventually(func() map[string]string { return s.pods("zone-a") }).Should(HaveKeyWithValue("zone-a-1", v+"~"))
		s.release("2.0.0", "zone-b")
		s.play(t)
		s.Eventually(func() string { return s.blocked("ingester") }).Should(Equal(rolloutgroup.SetNotReadyReason))
		s.Consistently(s.guard.took).Should(BeEmpty())
		s.fix(v)
		s.runs("2.0.0", "zone-b")
		s.Expect(s.guard.took()).To(Equal([]string{"zone-b-0"}))
	})
	t.Run("old pods have not gone", func(t *testing.T) {
		s := open(t, zone("zone-a", 2), zone("zone-b", 1))
		s.hold("zone-a-1")
		s.change("zone-a", scaled(1))
		s.Eventually(func() map[string]string { return s.pods("zone-a") }).Should(HaveKeyWithValue("zone-a-1", "1.0.0~"))
		s.release("2.0.0", "zone-b")
		s.play(t)
		s.Eventually(func() string { return s.blocked("ingester") }).Should(Equal(rolloutgroup.SetNotReadyReason))
		s.Consistently(s.guard.took).Should(BeEmpty())
		s.letGo("zone-a-1")
		s.runs("2.0.0", "zone-b")
	})
}

func TestSetWithAnotherStrategyStopsItsGroupUntilItIsFixed(t *testing.T) {
	s := open(t, zone("zone-a", 2))
	s.hold("zone-a-0")
	s.play(t)
	s.release("2.0.0", "zone-a")
	s.Eventually(s.guard.took).Should(Equal([]string{"zone-a-0"}))
	s.add(zone("zone-b", 1, strategy(appsv1.RollingUpdateStatefulSetStrategyType)))
	s.Eventually(func() []fixture.Event { return s.Events.All() }).Should(ContainElement(And(
		HaveField("On", "zone-b"), HaveField("Type", "Warning"), HaveField("Reason", rolloutgroup.GroupInvalidEvent),
		HaveField("Message", ContainSubstring("zone-b has RollingUpdate")))))
	s.letGo("zone-a-0")
	s.Eventually(func() map[string]string { return s.pods("zone-a") }).Should(HaveKeyWithValue("zone-a-0", "2.0.0"))
	s.Consistently(s.guard.took).Should(HaveLen(1))
	s.change("zone-b", strategy(appsv1.OnDeleteStatefulSetStrategyType))
	s.runs("2.0.0", "zone-a")
}

func TestPausedSetIsLeftAloneAndStillCounts(t *testing.T) {
	s := open(t, zone("zone-a", 2, annotated(rolloutgroup.PausedAnnotation, "true")), zone("zone-b", 1))
	s.play(t)
	s.saysReady("zone-a-0", corev1.ConditionFalse)
	s.release("2.0.0", "zone-a", "zone-b")
	s.Eventually(func() string { return s.blocked("ingester") }).Should(Equal(rolloutgroup.SetNotReadyReason))
	s.Consistently(s.guard.took).Should(BeEmpty())
	s.saysReady("zone-a-0", corev1.ConditionTrue)
	s.runs("2.0.0", "zone-b")
	s.Eventually(func() string { return s.blocked("ingester") }).Should(Equal(rolloutgroup.RolloutPausedReason))
	s.Expect(s.guard.took()).To(Equal([]string{"zone-b-0"}))
	s.change("zone-a", annotated(rolloutgroup.PausedAnnotation, "yes"))
	s.runs("2.0.0", "zone-a")
}

func TestPodsOfOthersAreLeftAlone(t *testing.T) {
	stray := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "zone-a-7", Labels: map[string]string{
			"app": "zone-a", "name": "zone-a", appsv1.StatefulSetRevisionLabel: "old", appsv1.StatefulSetPodNameLabel: "zone-a-7",
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "stray", Image: image("0.0.1")}}},
	}
	s := open(t, zone("zone-a", 1))
	// The StatefulSet controller does not adopt a pod with a controller of another kind.
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: s.Namespace}}
	s.Expect(s.Create(s.Ctx, owner)).To(Succeed())
	stray.Namespace = s.Namespace
	stray.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	s.Expect(s.Create(s.Ctx, stray)).To(Succeed())
	ungrouped := zone("alone", 1, func(set *appsv1.StatefulSet) { set.Labels = nil })
	s.add(ungrouped)
	s.play(t)
	s.release("2.0.0", "alone", "zone-a")
	s.Eventually(func() map[string]string { return s.pods("zone-a") }).Should(
		Equal(map[string]string{"zone-a-0": "2.0.0", "zone-a-7": "0.0.1"}))
	s.Eventually(func() []string { return reported(s.Events.All()) }).Should(ContainElement("zone-a RolloutFinished"), "the stray does not count")
	s.Consistently(s.guard.took).Should(Equal([]string{"zone-a-0"}))
}

func TestPodThatWasReplacedMeanwhileLives(t *testing.T) {
	s := open(t, zone("zone-a", 1))
	var successor *corev1.Pod
	s.guard.before = func(pod *corev1.Pod) {
		if successor != nil {
			return
		}
		now := int64(0)
		s.Expect(testClient.Delete(s.Ctx, pod, &client.DeleteOptions{GracePeriodSeconds: &now})).To(Succeed())
		s.Eventually(func() any { return s.pods("zone-a")["zone-a-0"] }).Should(Equal("2.0.0"))
		successor = s.pod("zone-a-0")
	}
	s.play(t)
	s.release("2.0.0", "zone-a")
	s.runs("2.0.0", "zone-a")
	s.Expect(s.pod("zone-a-0").UID).To(Equal(successor.UID))
	s.Expect(s.guard.took()).To(BeEmpty())
}

func TestGroupsHaveNothingToDoWithEachOther(t *testing.T) {
	other := labelled(rolloutgroup.Label, "store")
	s := open(t, zone("zone-a", 1), zone("zone-b", 1), zone("store-a", 1, other), zone("store-b", 1, other))
	s.saysReady("zone-b-0", corev1.ConditionFalse)
	s.play(t)
	s.release("2.0.0", "zone-a", "store-a", "store-b")
	s.runs("2.0.0", "store-a", "store-b")
	s.Expect(s.blocked("ingester")).To(Equal(rolloutgroup.SetNotReadyReason))
	s.Expect(s.blocked("store")).To(BeEmpty())
	s.Expect(s.pods("zone-a")).To(HaveKeyWithValue("zone-a-0", "1.0.0"))
}

func TestGroupIsANamespaceAndAName(t *testing.T) {
	one, two := open(t, zone("zone-a", 1)), open(t, zone("zone-a", 1), zone("zone-b", 1))
	two.saysReady("zone-b-0", corev1.ConditionFalse)
	one.everywhere = true
	one.play(t)
	one.release("2.0.0", "zone-a")
	two.release("2.0.0", "zone-a")
	one.runs("2.0.0", "zone-a")
	one.Eventually(func() string { return one.blockedIn(two.Namespace, "ingester") }).Should(Equal(rolloutgroup.SetNotReadyReason))
	one.Expect(two.pods("zone-a")).To(HaveKeyWithValue("zone-a-0", "1.0.0"))
	two.saysReady("zone-b-0", corev1.ConditionTrue)
	two.runs("2.0.0", "zone-a")
}

func TestSetOfNoPodsIsReadyAtOnce(t *testing.T) {
	s := open(t, zone("zone-a", 0), zone("zone-b", 1))
	s.play(t)
	s.release("2.0.0", "zone-a", "zone-b")
	s.runs("2.0.0", "zone-a", "zone-b")
	s.Expect(s.guard.took()).To(Equal([]string{"zone-b-0"}))
}

func TestObstacleOfAGroupGoesWithItsSet(t *testing.T) {
	for name, leave := range map[string]func(*testEnv){
		"the set is deleted":     func(s *testEnv) { s.Expect(s.Delete(s.Ctx, s.set("zone-b"))).To(Succeed()) },
		"its label is removed":   func(s *testEnv) { s.change("zone-b", func(set *appsv1.StatefulSet) { set.Labels = nil }) },
		"its pod is made anew":   func(s *testEnv) { s.Expect(s.Delete(s.Ctx, s.pod("zone-b-0"))).To(Succeed()) },
		"it joins another group": func(s *testEnv) { s.change("zone-b", labelled(rolloutgroup.Label, "store")) },
		"its pod becomes ready":  func(s *testEnv) { s.saysReady("zone-b-0", corev1.ConditionTrue) },
		"it is scaled to no pod": func(s *testEnv) { s.change("zone-b", scaled(0)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, zone("zone-a", 1), zone("zone-b", 1))
			s.saysReady("zone-b-0", corev1.ConditionFalse)
			s.play(t)
			s.release("2.0.0", "zone-a")
			s.Eventually(func() string { return s.blocked("ingester") }).Should(Equal(rolloutgroup.SetNotReadyReason))
			leave(s)
			s.runs("2.0.0", "zone-a")
		})
	}
}

func TestSetIsFinishedThoughItsPodsWereReplacedByOthers(t *testing.T) {
	s := open(t, zone("zone-a", 1))
	s.release("2.0.0", "zone-a")
	s.Expect(s.Delete(s.Ctx, s.pod("zone-a-0"))).To(Succeed())
	s.Eventually(func() any { return s.pods("zone-a")["zone-a-0"] }).Should(Equal("2.0.0"))
	s.play(t)
	s.runs("2.0.0", "zone-a")
	s.Expect(s.guard.took()).To(BeEmpty())
}

func TestNothingIsAskedForAtRest(t *testing.T) {
	s := open(t, zone("zone-a", 1), zone("zone-b", 1))
	s.play(t)
	s.release("2.0.0", "zone-a", "zone-b")
	s.runs("2.0.0", "zone-a", "zone-b")
	s.Eventually(func() []string { return reported(s.Events.All()) }).Should(HaveLen(4))
	before := len(s.requests.about(""))
	s.Consistently(func() int { return len(s.requests.about("")) }, moment).Should(Equal(before))
	s.Expect(s.requests.about("DELETE ")).To(HaveLen(2))
	s.Expect(s.requests.about("/status 200")).To(HaveLen(2), "one write for each set")
}

func TestPodsAreWatchedOnlyWhereThereIsAGroup(t *testing.T) {
	s := open(t, zone("alone", 1, func(set *appsv1.StatefulSet) { set.Labels = nil }))
	s.play(t)
	s.Eventually(func() []string { return s.requests.about("/statefulsets") }).ShouldNot(BeEmpty())
	s.Consistently(func() []string { return s.requests.about("/pods") }, moment).Should(BeEmpty())
	s.change("alone", labelled(rolloutgroup.Label, "ingester"), version("2.0.0"))
	s.runs("2.0.0", "alone")
}
