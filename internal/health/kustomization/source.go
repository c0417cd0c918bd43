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

// observeSource is kstatus of the Kustomization itself, with two corrections
// for the way in which Flux reports progress.
//
// Flux sets Ready to Unknown whenever it looks again, at each interval and with
// nothing to apply. That takes nothing back from a check that is Healthy; a
// check that is not waits for the end of the pass. And the steps of a pass are
// told apart only in messages, which are not worth a write each.
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

// statusOf is what kstatus reads of a Kustomization; an inventory may be large.
func statusOf(k *kustomizev1.Kustomization) *unstructured.Unstructured {
	read := &kustomizev1.Kustomization{ObjectMeta: k.ObjectMeta}
	read.ManagedFields = nil
	read.Status.ObservedGeneration, read.Status.Conditions = k.Status.ObservedGeneration, k.Status.Conditions
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(read)
	if err != nil {
		content = map[string]any{} // never: each of its types can be converted
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(kustomizations.GroupVersionKind)
	return object
}

// isIdlePass says whether Flux is looking again at what it has applied already.
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

// Basis identifies everything about a Kustomization that a verdict rests on,
// apart from the objects in its inventory. As long as it stays the same, so
// does the verdict on the Kustomization, and so does its inventory.
//
// Seen from a Healthy check a Kustomization that is Ready and one in an idle
// pass are the same. Nothing but the digest in the history shows that the
// inventory changed without a new revision, so without a history (Flux before
// 2.7) every version of the object is another.
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
		message = "" // caches do not keep it
	}
	return fmt.Sprintf("%s %s %q %s,", c.Status, c.Reason, message, c.LastTransitionTime.UTC())
}
