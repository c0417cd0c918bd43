// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kjson "sigs.k8s.io/json"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

// source is a Kustomization or a HelmRelease, as far as a verdict depends on it.
type source struct {
	Subject
	version metav1.ObjectMeta // only what shows which version it is: the object may be large

	observedGeneration int64
	conditions         []metav1.Condition
	remote             bool // it applies to another cluster
	inventory          []entry
	isDone             bool   // Flux attempts nothing but what it has applied already
	content            string // identifies what Flux has attempted and applied
}

// entry is an object of an inventory.
type entry struct{ id, version string }

// decode reads a source from JSON.
func decode(subject Subject, raw []byte) (source, error) {
	if subject.Kind == helmv2.HelmReleaseKind {
		h := &helmv2.HelmRelease{}
		err := kjson.UnmarshalCaseSensitivePreserveInts(raw, h)
		return ofHelmRelease(h), err
	}
	k := &kustomizev1.Kustomization{}
	err := kjson.UnmarshalCaseSensitivePreserveInts(raw, k)
	return ofKustomization(k), err
}

// ofKustomization returns a Kustomization as a source. Only the digest in the history shows
// that the inventory changed without a new revision. So without a history (Flux before
// 2.7) the content changes with every version of the object.
func ofKustomization(k *kustomizev1.Kustomization) source {
	s := source{
		Subject: Of(client.ObjectKeyFromObject(k)), version: versionOf(k), remote: k.Spec.KubeConfig != nil,
		observedGeneration: k.Status.ObservedGeneration, conditions: k.Status.Conditions,
	}
	if k.Status.Inventory != nil {
		for _, e := range k.Status.Inventory.Entries {
			s.inventory = append(s.inventory, entry{e.ID, e.Version})
		}
	}
	attempted, applied := k.Status.LastAttemptedRevision, k.Status.LastAppliedRevision
	s.isDone = applied != "" && attempted == applied
	digest := "version " + k.ResourceVersion
	if len(k.Status.History) > 0 {
		digest = k.Status.History[0].Digest
	}
	s.content = fmt.Sprintf("%q|%q|%s", attempted, applied, digest)
	return s
}

func versionOf(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{UID: o.GetUID(), Generation: o.GetGeneration(), DeletionTimestamp: o.GetDeletionTimestamp()}
}

// ofHelmRelease returns a HelmRelease as a source. Each action of Helm is a new version in
// its history. Of a HelmRelease that no Rollout deploys by, caches keep no history: then
// every version of the object counts as a change.
func ofHelmRelease(h *helmv2.HelmRelease) source {
	s := source{
		Subject: OfHelmRelease(client.ObjectKeyFromObject(h)), version: versionOf(h), remote: h.Spec.KubeConfig != nil,
		observedGeneration: h.Status.ObservedGeneration, conditions: h.Status.Conditions,
	}
	if h.Status.Inventory != nil {
		for _, e := range h.Status.Inventory.Entries {
			s.inventory = append(s.inventory, entry{e.ID, e.Version})
		}
	}
	installed := "version " + h.ResourceVersion
	if newest := targets.NewestSnapshot(h); newest != nil {
		s.isDone = newest.ChartVersion == h.Status.LastAttemptedRevision
		installed = fmt.Sprintf("%d|%s|%q|%q", newest.Version, newest.Status, newest.ChartVersion, newest.OCIDigest)
	}
	s.content = fmt.Sprintf("%q|%q|%s", h.Status.LastAttemptedRevision, h.Status.LastAttemptedRevisionDigest, installed)
	return s
}

// observe returns the state of the source itself by kstatus, with two corrections for the
// way in which Flux reports progress.
//
// Flux begins a pass at each interval, also with nothing to apply, and is not done until
// the pass ends. A check that is Healthy stays Healthy then. Any other check waits for the
// end of the pass. And the steps of a pass differ only in messages, which are not worth a
// write each.
func (s source) observe(healthy bool) observation {
	seen := observe(s.status())
	if seen.Phase != workload.Progressing {
		return seen
	}
	if healthy && s.isIdlePass() {
		seen.Phase = workload.Current
		return seen
	}
	seen.Message = s.progress(seen.Message)
	return seen
}

// status returns the fields that kstatus reads, which all kinds of Flux have in common. It
// omits the inventory, which may be large.
func (s source) status() *unstructured.Unstructured {
	read := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Namespace, Name: s.Name, Generation: s.version.Generation, DeletionTimestamp: s.version.DeletionTimestamp,
	}}
	read.Status.ObservedGeneration, read.Status.Conditions = s.observedGeneration, s.conditions
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(read)
	if err != nil {
		content = map[string]any{} // never happens: each of its types can be converted
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(s.mapping().GroupVersionKind)
	return object
}

// isIdlePass reports whether Flux is reconciling what it has applied already. A
// Kustomization is not Ready meanwhile. A HelmRelease stays Ready until Helm acts.
func (s source) isIdlePass() bool {
	ready := apimeta.FindStatusCondition(s.conditions, meta.ReadyCondition)
	if ready == nil || ready.Status == metav1.ConditionFalse {
		return false
	}
	isPass := ready.Status == metav1.ConditionUnknown && ready.Reason == meta.ProgressingReason
	if s.Kind == helmv2.HelmReleaseKind {
		isPass = ready.Status == metav1.ConditionTrue && apimeta.IsStatusConditionTrue(s.conditions, meta.ReconcilingCondition)
	}
	return isPass && s.isDone && !apimeta.IsStatusConditionTrue(s.conditions, meta.StalledCondition) &&
		s.version.DeletionTimestamp.IsZero() && s.observedGeneration == s.version.Generation
}

func (s source) progress(otherwise string) string {
	ready := apimeta.FindStatusCondition(s.conditions, meta.ReadyCondition)
	switch {
	case ready != nil && ready.Status == metav1.ConditionFalse:
		return ready.Message
	case apimeta.IsStatusConditionTrue(s.conditions, meta.ReconcilingCondition):
		return "Flux is applying it"
	}
	return otherwise
}

// Basis identifies everything about a Kustomization or a HelmRelease that a verdict depends
// on, except the objects in its inventory. As long as it stays the same, so do the verdict
// on it and its inventory. For a Healthy check, one that is Ready and one in an idle pass
// are the same.
func Basis(object client.Object, healthy bool) string {
	switch o := object.(type) {
	case *kustomizev1.Kustomization:
		return ofKustomization(o).basis(healthy)
	case *helmv2.HelmRelease:
		return ofHelmRelease(o).basis(healthy)
	}
	return ""
}

func (s source) basis(healthy bool) string {
	return fmt.Sprintf("%s|%d|%t|%d|%s|%s", s.version.UID, s.version.Generation, s.version.DeletionTimestamp.IsZero(),
		s.observedGeneration, s.content, s.readiness(healthy))
}

func (s source) readiness(healthy bool) string {
	ready := apimeta.FindStatusCondition(s.conditions, meta.ReadyCondition)
	stalled := apimeta.FindStatusCondition(s.conditions, meta.StalledCondition)
	reconciling := apimeta.IsStatusConditionTrue(s.conditions, meta.ReconcilingCondition)
	isReady := ready != nil && ready.Status == metav1.ConditionTrue && !reconciling && stalled == nil
	if isReady || (healthy && s.isIdlePass()) {
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
