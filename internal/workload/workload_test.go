// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

func TestObjectOfAnyKind(t *testing.T) {
	g := NewWithT(t)
	d := deployment(1, counts{1, 0, 1, 1}, paused)
	g.Expect(workload.Of(asUnstructured(t, d))).To(Equal(workload.Deployment(d)))
	g.Expect(workload.Deployment(d).Phase).To(Equal(workload.Held))

	widget := func(conditions ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget",
			"status": map[string]any{"observedGeneration": int64(3), "conditions": conditions},
		}}
	}
	g.Expect(workload.Of(widget())).To(Equal(workload.State{
		Phase: workload.Current, Message: "Resource is current", ObservedGeneration: 3,
	}))
	stalled := map[string]any{
		"type": "Stalled", "status": "True", "message": "no such thing", "lastTransitionTime": missedAt.Format(time.RFC3339),
	}
	got := workload.Of(widget(stalled))
	got.Since = got.Since.UTC()
	g.Expect(got).To(Equal(workload.State{
		Phase: workload.Failed, Message: "no such thing", Since: missedAt, ObservedGeneration: 3,
	}))
	g.Expect(workload.Of(widget("broken"))).To(And(
		HaveField("Phase", workload.Unknown),
		HaveField("Message", HavePrefix("its status cannot be understood: ")),
	))
}

func TestObjectThatIsNotWhatItsKindSaysIsUnknown(t *testing.T) {
	g := NewWithT(t)
	for _, object := range []any{deployment(1, counts{1, 1, 1, 1}), statefulSet(1, counts{1, 1, 1, 1})} {
		u := asUnstructured(t, object)
		g.Expect(unstructured.SetNestedField(u.Object, "many", "spec", "replicas")).To(Succeed())
		g.Expect(workload.Of(u)).To(And(
			HaveField("Phase", workload.Unknown),
			HaveField("Message", HavePrefix("its status cannot be understood: ")),
		))
	}
}

func TestPodThatNobodySchedulesIsToBeLookedAtAgain(t *testing.T) {
	g := NewWithT(t)
	created := time.Now().Truncate(time.Second)
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Time{Time: created}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
		}},
	}
	got := workload.Of(asUnstructured(t, pod))
	g.Expect(got.Phase).To(Equal(workload.Progressing))
	g.Expect(got.RecheckAt).To(BeTemporally("==", created.Add(15*time.Second)))

	d := workload.Deployment(deployment(1, counts{}, func(d *appsv1.Deployment) { d.CreationTimestamp.Time = created }))
	g.Expect(d.RecheckAt).To(BeZero(), "nothing else changes without an event")
}
