// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"context"
	"reflect"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/internal/metrics"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestRestartDoesNotForgetAPodThatGoes(t *testing.T) {
	s := open(t, zone("zone-a", 2), zone("zone-b", 1))
	s.hold("zone-a-0")
	stop := s.play(t)
	s.release("2.0.0", "zone-a", "zone-b")
	s.Eventually(s.guard.took).Should(HaveLen(1))
	stop()
	s.play(t)
	s.Consistently(s.guard.took).Should(HaveLen(1))
	if s.guard.took()[0] == "zone-a-0" {
		s.letGo("zone-a-0")
	}
	s.runs("2.0.0", "zone-b")
}

func TestRolloutSurvivesRestartsAtEachDeletion(t *testing.T) {
	s := open(t, zone("zone-a", 2), zone("zone-b", 2))
	s.release("2.0.0", "zone-a", "zone-b")
	for n := 1; n <= 4; n++ {
		stop := s.play(t)
		s.Eventually(s.guard.took).Should(HaveLen(n))
		stop()
	}
	s.play(t)
	s.runs("2.0.0", "zone-a", "zone-b")
	s.Expect(s.guard.took()).To(Equal([]string{"zone-a-0", "zone-a-1", "zone-b-0", "zone-b-1"}))
}

func TestTwoInstancesAtOnceDeleteNoMoreThanOne(t *testing.T) {
	s := open(t, zone("zone-a", 3), zone("zone-b", 3))
	s.play(t)
	s.play(t)
	s.release("2.0.0", "zone-a", "zone-b")
	s.runs("2.0.0", "zone-a", "zone-b")
	// The other instance may delete a terminating pod once more; neither deletes another
	// pod.
	s.Expect(s.guard.taken()).To(HaveLen(6))
}

// TestOldCacheDeletesNothing uses a cache that still shows all pods as Ready and
// outdated, although a pod of the set is being deleted, no matter by whom.
func TestOldCacheDeletesNothing(t *testing.T) {
	s := open(t, zone("zone-a", 2), zone("zone-b", 1))
	s.release("2.0.0", "zone-a", "zone-b")
	s.Eventually(func() bool {
		status := s.set("zone-b").Status
		return status.UpdateRevision != status.CurrentRevision && s.set("zone-a").Status.ObservedGeneration == 2
	}).Should(BeTrue())
	r := s.stepwise(&corev1.PodList{})
	s.hold("zone-a-1")
	s.Expect(s.Delete(s.Ctx, s.pod("zone-a-1"))).To(Succeed())

	s.step(r)
	s.Expect(s.guard.took()).To(BeEmpty())
	s.letGo("zone-a-1")
	s.Eventually(func() map[string]string { return s.pods("zone-a") }).Should(HaveKeyWithValue("zone-a-1", "2.0.0"))
	s.Eventually(func() int32 { return s.set("zone-a").Status.ReadyReplicas }).Should(BeEquivalentTo(2))
	s.step(r)
	s.Expect(s.guard.took()).To(Equal([]string{"zone-a-0"}))

	lists := len(s.requests.about("/pods"))
	s.step(r)
	s.Expect(s.guard.took()).To(HaveLen(1))
	s.Expect(s.requests.about("/pods")).To(HaveLen(lists), "it remembers what it deleted, and asks for nothing")
}

// TestOldCachePromotesNoRevisionTwice uses a cache that does not show yet that a set
// was finished.
func TestOldCachePromotesNoRevisionTwice(t *testing.T) {
	s := open(t, zone("zone-a", 1))
	s.release("2.0.0", "zone-a")
	s.Expect(s.Delete(s.Ctx, s.pod("zone-a-0"))).To(Succeed())
	s.Eventually(func() map[string]string { return s.pods("zone-a") }).Should(HaveKeyWithValue("zone-a-0", "2.0.0"))
	s.Eventually(func() int32 { return s.set("zone-a").Status.UpdatedReplicas }).Should(BeEquivalentTo(1))
	s.comesUp("zone-a")
	r := s.stepwise(&corev1.PodList{}, &appsv1.StatefulSetList{})
	s.step(r)
	s.runs("2.0.0", "zone-a")

	asked := s.requests.about("")
	s.step(r)
	s.Expect(s.requests.about("")).To(Equal(asked), "it remembers what it wrote, and asks for nothing")
	s.Expect(reported(s.Events.All())).To(Equal([]string{"zone-a RolloutFinished"}))
}

// stepwise returns a reconciler that does one pass per call of step, with a cache in
// which the lists of some kinds never change.
func (s *testEnv) stepwise(old ...client.ObjectList) *Reconciler {
	user := testPlane.RESTConfig()
	user.Wrap(s.requests.wrap)
	live, err := client.NewWithWatch(user, client.Options{})
	s.Expect(err).NotTo(HaveOccurred())
	kept := map[reflect.Type]reflect.Value{}
	for _, list := range old {
		s.Expect(s.List(s.Ctx, list, client.InNamespace(s.Namespace))).To(Succeed())
		kept[reflect.TypeOf(list)] = reflect.ValueOf(list)
	}
	frozen := interceptor.NewClient(live, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			found, ok := kept[reflect.TypeOf(list)]
			if !ok {
				return testClient.List(ctx, list, options...)
			}
			copied := found.Interface().(client.ObjectList).DeepCopyObject()
			reflect.ValueOf(list).Elem().Set(reflect.ValueOf(copied).Elem())
			return nil
		},
	})
	r := &Reconciler{
		Client: s.guard.through(frozen), APIReader: live, Events: s.Events, Now: time.Now, Metrics: metrics.NewGroups(),
	}
	r.pods.first = &podList{ended: make(chan struct{})}
	close(r.pods.first.ended)
	return r
}

func (s *testEnv) step(r *Reconciler) {
	_, err := r.Reconcile(s.Ctx, ctrl.Request{NamespacedName: types.NamespacedName{Namespace: s.Namespace, Name: "ingester"}})
	s.Expect(err).NotTo(HaveOccurred())
}

// TestDeletionThatFailsIsTriedAgain makes one deletion fail. No event is a warning.
func TestDeletionThatFailsIsTriedAgain(t *testing.T) {
	s := open(t, zone("zone-a", 1))
	s.guard.refuse = 1
	s.play(t)
	s.release("2.0.0", "zone-a")
	s.runs("2.0.0", "zone-a")
	s.Eventually(func() []map[string]string { return s.series("rollout_operator_group_reconciles_failed_total") }).Should(
		ConsistOf(HaveKeyWithValue("value", "1")))
	s.Eventually(s.Events.All).Should(HaveExactElements(
		fixture.Event{On: "zone-a", Type: "Normal", Reason: "RolloutStarted", Message: "pods are replaced by those of revision " + s.set("zone-a").Status.UpdateRevision},
		HaveField("Reason", "PodReplaced"),
		HaveField("Reason", "RolloutFinished"),
	))
}
