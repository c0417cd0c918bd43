// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"github.com/fluxcd/pkg/apis/acl"
	"github.com/fluxcd/pkg/apis/meta"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// untriedReasons are the reasons with which kustomize-controller and helm-controller end a
// pass before they have tried to apply anything. That says nothing against the version, and
// Flux tries again without any action, so it is not a failure. But nothing goes on until the
// cause is gone. It lacks helm-controller's reason for a chart that it does not accept:
// that may be the chart of an earlier version.
var untriedReasons = map[string]v1alpha1.TargetReason{
	meta.DependencyNotReadyReason:   v1alpha1.TargetDependencyNotReady,
	meta.ArtifactFailedReason:       v1alpha1.TargetArtifactFailed,
	"SourceNotReady":                v1alpha1.TargetArtifactFailed,
	"ValuesError":                   v1alpha1.TargetArtifactFailed,
	acl.AccessDeniedReason:          v1alpha1.TargetAccessDenied,
	meta.InvalidCELExpressionReason: v1alpha1.TargetNotApplied,
	"FactoryError":                  v1alpha1.TargetNotApplied,
	"RESTClientError":               v1alpha1.TargetNotApplied,
	"ReconcileError":                v1alpha1.TargetNotApplied,
	"ResourceManagerError":          v1alpha1.TargetNotApplied,
	"StateError":                    v1alpha1.TargetNotApplied,
}

// untried returns why Flux has not tried to apply the version, in the words of Flux. It
// returns pending if Flux gives no such reason.
func (t Target) untried(ready *metav1.Condition) observation {
	if ready == nil {
		return pending
	}
	reason, untried := untriedReasons[ready.Reason]
	if !untried {
		return pending
	}
	if found := t.sourceFailed(); reason == v1alpha1.TargetArtifactFailed && !found.isNothing() {
		return found
	}
	return waiting(reason, "%s", ready.Message)
}

// sourceFailed returns why the source of the target has nothing to offer. Of a source in
// another namespace it only repeats the reason, because not everybody who may read this
// namespace may read the other one.
func (t Target) sourceFailed() observation {
	if t.Source == nil {
		return observation{}
	}
	ready := apimeta.FindStatusCondition(t.Source.GetConditions(), meta.ReadyCondition)
	_, foreign := t.ForeignSource()
	name := t.sourceName()
	switch {
	case viewOf(t.Source).suspended:
		return waiting(v1alpha1.TargetArtifactFailed, "its %s is suspended: resume it", name)
	case ready == nil || ready.Status != metav1.ConditionFalse:
		return observation{}
	case foreign:
		return waiting(v1alpha1.TargetArtifactFailed, "its %s has failed (%s)", name, ready.Reason)
	}
	return waiting(v1alpha1.TargetArtifactFailed, "its %s has failed: %s", name, ready.Message)
}

// sourceName returns the kind and name of the Repository that the target consumes, with its
// namespace if that is another one.
func (t Target) sourceName() string {
	ref, _ := t.consumes()
	if ref.Namespace == t.Object().GetNamespace() {
		return ref.Kind + " " + ref.Name
	}
	return ref.String()
}

// LacksArtifact reports whether Flux has not come further since it could not get what the
// target should apply. Kustomize-controller hides that while it tries again, and records
// the attempt once it has everything.
func (t Target) LacksArtifact(release Release) bool {
	if t.Repository != nil {
		return pulled(t.Repository, release) == ""
	}
	if t.Artifact != nil {
		return t.Artifact.offered(release) && !t.Artifact.holds(release, t.Observed)
	}
	return t.Kustomization != nil && (t.Source == nil || !t.isCurrent(t.Kustomization.Status.LastAttemptedRevision))
}
