// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/statefulsets"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// Without kube-controller-manager the status stays as it is.
func TestStatusThatStaysOldIsReportedOncePerGeneration(t *testing.T) {
	g := NewWithT(t)
	key := types.NamespacedName{Namespace: "shop", Name: "ingester"}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "zone-a", UID: "a", Generation: 2, Labels: map[string]string{rolloutgroup.Label: "ingester"}},
		Spec:       appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{}, UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: "OnDelete"}},
		Status:     appsv1.StatefulSetStatus{ObservedGeneration: 1, UpdateRevision: "a-1", CurrentRevision: "a-1"},
	}
	api, events, now := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(set).Build(), &fixture.Events{}, fixture.Noon
	r := &Reconciler{Client: api, APIReader: api, Events: events, Now: func() time.Time { return now }, rights: rights{mayEmit: map[string]bool{"shop": true}}}
	pass := func(after time.Duration) []fixture.Event {
		now = now.Add(after)
		m := r.memories.of(key)
		read, err := r.gatherLive(t.Context(), key, m)
		g.Expect(err).NotTo(HaveOccurred())
		m.prune(read.facts.Sets)
		r.emit(t.Context(), read, m, statefulsets.Decide(read.facts))
		return events.Take()
	}
	old := func(generation string) []fixture.Event {
		return []fixture.Event{{On: "zone-a", Type: "Warning", Reason: "NotObserved", Message: "for more than 5 minutes, the status has not shown generation " + generation +
			": it is of generation 1, and the rollout group waits for it; check that kube-controller-manager runs, and its log for this StatefulSet"}}
	}

	g.Expect(pass(0)).To(BeEmpty())
	g.Expect(pass(4 * time.Minute)).To(BeEmpty())
	g.Expect(pass(time.Minute)).To(Equal(old("2")))
	g.Expect(pass(time.Hour)).To(BeEmpty(), "once")
	set.Generation = 3
	g.Expect(api.Update(t.Context(), set)).To(Succeed())
	g.Expect(pass(time.Minute)).To(BeEmpty(), "another change begins anew")
	g.Expect(pass(5 * time.Minute)).To(Equal(old("3")))
	set.Status.ObservedGeneration = 3
	g.Expect(api.Status().Update(t.Context(), set)).To(Succeed())
	g.Expect(pass(time.Minute)).To(BeEmpty())
	g.Expect(r.memories.of(key).unobserved).To(BeEmpty(), "it is forgotten")
}
