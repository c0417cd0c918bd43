// SPDX-License-Identifier: Apache-2.0

package write_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// TestWriteOnlyReadsItsArgument: another client has written meanwhile, and its values in the
// response must not be written into the given object, which belongs to a cache.
func TestWriteOnlyReadsItsArgument(t *testing.T) {
	ctx := context.Background()
	for name, send := range map[string]func(c client.Client, pod *corev1.Pod) (*corev1.Pod, error){
		"Patch": func(c client.Client, pod *corev1.Pod) (*corev1.Pod, error) {
			return write.Patch(ctx, c, pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"b":"2"}}}`)))
		},
		"PatchStatus": func(c client.Client, pod *corev1.Pod) (*corev1.Pod, error) {
			return write.PatchStatus(ctx, c, pod, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Failed"}}`)))
		},
		"UpdateStatus": func(c client.Client, pod *corev1.Pod) (*corev1.Pod, error) {
			wanted := *pod
			wanted.ResourceVersion, wanted.Status.Phase = "", corev1.PodFailed
			return write.UpdateStatus(ctx, c, &wanted)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			cached := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"a": "1"}},
				Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
			}
			c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithStatusSubresource(cached).WithObjects(cached.DeepCopy()).Build()
			changed := &corev1.Pod{}
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(cached), changed)).To(Succeed())
			changed.Labels["a"] = "another"
			g.Expect(c.Update(ctx, changed)).To(Succeed())
			cached.ResourceVersion = changed.ResourceVersion

			before := cached.DeepCopy()
			written, err := send(c, cached)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(cached).To(Equal(before))
			g.Expect(written.ResourceVersion).NotTo(Equal(before.ResourceVersion))
			g.Expect(written.Labels).To(HaveKeyWithValue("a", "another"), "it is the answer")
		})
	}
}

func TestPatchSaysWhatHasChangedOfAnObject(t *testing.T) {
	g, ctx := NewWithT(t), context.Background()
	before := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(before.DeepCopy()).Build()
	after := before.DeepCopy()
	after.Labels = map[string]string{"b": "2"}
	var object client.Object = after // of a kind that the caller does not know
	written, err := write.Patch(ctx, c, object, client.MergeFrom(before))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(written.(*corev1.Pod).Labels).To(Equal(after.Labels))
}

// TestStatusPatchReplacesTimesAsAWhole: a time is a struct, whose fields are not those of
// its JSON.
func TestStatusPatchReplacesTimesAsAWhole(t *testing.T) {
	g := NewWithT(t)
	noon := metav1.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	later := metav1.NewTime(noon.Add(time.Hour))
	before := corev1.PodStatus{StartTime: &noon, Phase: corev1.PodRunning, Message: "as before"}
	after := corev1.PodStatus{StartTime: &later, Message: "as before"}
	patch, err := write.StatusPatch("7", before, after)
	g.Expect(err).NotTo(HaveOccurred())
	body, err := patch.Data(nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(body).To(MatchJSON(`{"metadata":{"resourceVersion":"7"},"status":{"phase":null,"startTime":"2026-03-02T13:00:00Z"}}`))
}

func TestStatusPatchContainsInlineFieldsAsTheAPIDoes(t *testing.T) {
	g := NewWithT(t)
	before := v1alpha1.HealthCheckStatus{Status: v1alpha1.HealthStatusPending}
	before.Problem, before.Query = "no Service", "up"
	after := *before.DeepCopy()
	after.Problem, after.ObservedGeneration = "", 2
	patch, err := write.StatusPatch("7", before, after)
	g.Expect(err).NotTo(HaveOccurred())
	body, err := patch.Data(nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(body)).To(MatchJSON(`{"metadata": {"resourceVersion": "7"}, "status": {"problem": null, "observedGeneration": 2}}`))
}
