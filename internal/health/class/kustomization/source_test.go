// SPDX-License-Identifier: Apache-2.0

package kustomization_test

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
)

func TestEventsOfAKustomizationThatAreChanges(t *testing.T) {
	type change = func(*kustomizev1.Kustomization)
	conditions := func(c ...metav1.Condition) change {
		return func(k *kustomizev1.Kustomization) { k.Status.Conditions = c }
	}
	for name, tc := range map[string]struct {
		change         change
		healthy, other bool
	}{
		"a new version alone is none":         {func(k *kustomizev1.Kustomization) { k.ResourceVersion = "9" }, false, false},
		"an idle pass is, but not to Healthy": {conditions(inPass...), false, true},
		"a failed pass is": {conditions(condition(meta.ReadyCondition, metav1.ConditionFalse, "BuildFailed", "no such file")),
			true, true},
		"a stalled Kustomization is": {conditions(ready, condition(meta.StalledCondition, metav1.ConditionTrue, "X", "x")), true, true},
		"a new generation is":        {func(k *kustomizev1.Kustomization) { k.Generation = 2 }, true, true},
		"a new attempt is":           {func(k *kustomizev1.Kustomization) { k.Status.LastAttemptedRevision = "2" }, true, true},
		"a new applied revision is":  {func(k *kustomizev1.Kustomization) { k.Status.LastAppliedRevision = "2" }, true, true},
		"other content is":           {func(k *kustomizev1.Kustomization) { k.Status.History[0].Digest = "b" }, true, true},
		"another object is":          {func(k *kustomizev1.Kustomization) { k.UID = "b" }, true, true},
		"a deletion is":              {func(k *kustomizev1.Kustomization) { k.DeletionTimestamp = &metav1.Time{Time: newTime} }, true, true},
		"a version without history is": {func(k *kustomizev1.Kustomization) {
			k.Status.History, k.ResourceVersion = nil, "9"
		}, true, true},
		"a smaller cached copy is none": {func(k *kustomizev1.Kustomization) { k.Status.Inventory = nil }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := source([]metav1.Condition{ready}, webID)
			before.Status.History = meta.History{{Digest: "a"}}
			after := before.DeepCopy()
			tc.change(after)
			g.Expect(kustomization.Basis(after, true) != kustomization.Basis(before, true)).To(Equal(tc.healthy), "to a healthy check")
			g.Expect(kustomization.Basis(after, false) != kustomization.Basis(before, false)).To(Equal(tc.other), "to any other")
		})
	}
}

// TestMessageOfSuccessIsNoChange verifies that the message of a Ready condition does
// not count: a cached copy does not contain it.
func TestMessageOfSuccessIsNoChange(t *testing.T) {
	g := NewWithT(t)
	full := source([]metav1.Condition{ready, condition(meta.ReconcilingCondition, metav1.ConditionTrue, "Progressing", "x")}, webID)
	full.Status.Conditions[0].Message = "Applied revision: 1"
	cached := full.DeepCopy()
	cached.Status.Conditions[0].Message = ""
	g.Expect(kustomization.Basis(cached, false)).To(Equal(kustomization.Basis(full, false)))
}
