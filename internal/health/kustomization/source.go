// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	"fmt"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

// observeSource returns the state of the Kustomization itself by kstatus, with two
// corrections for the way in which Flux reports progress.
//
// Flux sets Ready to Unknown in each pass, at each interval, also with nothing to apply.
// A check that is Healthy stays Healthy then. Any other check waits for the end of the
// pass. And the steps of a pass differ only in messages, which are not worth a write
// each.
func observeSource(k *kustomizev1.Kustomization, healthy bool) observation {
	seen := observe(statusOf(k))
	if seen.Phase != workload.Progressing {
		return seen
	}
	if healthy && isIdlePass(k) {
		seen.Phase = workload.Current
		return seen
	}
	seen.Message = progress(k, seen.Message)
	return seen
}

// statusOf returns the fields of a Kustomization that kstatus reads. It omits the
// inventory, which may be large.
func statusOf(k *kustomizev1.Kustomization) *unstructured.Unstructured {
	read := &kustomizev1.Kustomization{ObjectMeta: k.ObjectMeta}
	read.ManagedFields = nil
	read.Status.ObservedGeneration, read.Status.Conditions = k.Status.ObservedGeneration, k.Status.Conditions
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(read)
	if err != nil {
		content = map[string]any{} // never happens: each of its types can be converted
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(kustomizations.GroupVersionKind)
	return object
}

// isIdlePass reports whether Flux is reconciling a revision that it has applied already.
func isIdlePass(k *kustomizev1.Kustomization) bool {
	ready := apimeta.FindStatusCondition(k.Status.Conditions, meta.ReadyCondition)
	return ready != nil && ready.Status == metav1.ConditionUnknown && ready.Reason == meta.ProgressingReason &&
		!apimeta.IsStatusConditionTrue(k.Status.Conditions, meta.StalledCondition) &&
		k.DeletionTimestamp.IsZero() &&
		k.Status.ObservedGeneration == k.Generation &&
		k.Status.LastAppliedRevision != "" &&
		k.Status.LastAttemptedRevision == k.Status.LastAppliedRevision
}

func progress(k *kustomizev1.Kustomization, otherwise string) string {
	ready := apimeta.FindStatusCondition(k.Status.Conditions, meta.ReadyCondition)
	switch {
	case ready != nil && ready.Status == metav1.ConditionFalse:
		return ready.Message
	case apimeta.IsStatusConditionTrue(k.Status.Conditions, meta.ReconcilingCondition):
		return "Flux is applying it"
	}
	return otherwise
}

// Basis identifies everything about a Kustomization that a verdict depends on, except the
// objects in its inventory. As long as it stays the same, so do the verdict on the
// Kustomization and its inventory.
//
// For a Healthy check, a Kustomization that is Ready and one in an idle pass are the
// same. Only the digest in the history shows that the inventory changed without a new
// revision. So without a history (Flux before 2.7) the basis changes with every version
// of the object.
func Basis(k *kustomizev1.Kustomization, healthy bool) string {
	content := "version " + k.ResourceVersion
	if len(k.Status.History) > 0 {
		content = k.Status.History[0].Digest
	}
	return fmt.Sprintf("%s|%d|%t|%d|%q|%q|%s|%s", k.UID, k.Generation, k.DeletionTimestamp.IsZero(),
		k.Status.ObservedGeneration, k.Status.LastAttemptedRevision, k.Status.LastAppliedRevision,
		content, readiness(k, healthy))
}

func readiness(k *kustomizev1.Kustomization, healthy bool) string {
	ready := apimeta.FindStatusCondition(k.Status.Conditions, meta.ReadyCondition)
	stalled := apimeta.FindStatusCondition(k.Status.Conditions, meta.StalledCondition)
	reconciling := apimeta.IsStatusConditionTrue(k.Status.Conditions, meta.ReconcilingCondition)
	isReady := ready != nil && ready.Status == metav1.ConditionTrue && !reconciling && stalled == nil
	if isReady || (healthy && isIdlePass(k)) {
		return "ready"
	}
	return conditionText(ready) + conditionText(stalled) + fmt.Sprint(reconciling)
}

func conditionText(c *metav1.Condition) string {
	if c == nil {
		return "none,"
	}
	message := c.Message
	if c.Status == metav1.ConditionTrue && c.Type == meta.ReadyCondition {
		message = "" // caches drop it
	}
	return fmt.Sprintf("%s %s %q %s,", c.Status, c.Reason, message, c.LastTransitionTime.UTC())
}
