// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Observe says how far the target is with the version. The answer rests on
// generations and revisions alone: that something is Ready proves nothing
// about a version it has not seen yet.
func (t Target) Observe(rollout *v1alpha1.Rollout, version string) promotion.Target {
	seen := promotion.Target{Kind: t.Kind(), Namespace: t.Object().GetNamespace(), Name: t.Object().GetName()}
	switch {
	case version != "" && !promotion.IsTag(version):
		seen.State = v1alpha1.TargetConflict
		seen.Message = fmt.Sprintf("status.history names %s, which cannot be a tag and is not written: set spec.wantedVersion to the right one",
			strconv.Quote(truncate.Text(version, 80)))
	case t.Repository != nil:
		seen.State, seen.Message = observeRepository(t.Repository, version)
		seen.Image = registry.Canonical(strings.TrimPrefix(t.Repository.Spec.URL, sourcev1.OCIRepositoryPrefix))
		if seen.State == v1alpha1.TargetApplied {
			seen.Digest = pulled(t.Repository, version)
		}
	case t.HelmRelease != nil:
		seen.State, seen.Message = t.observeHelmRelease(rollout, version)
	default:
		seen.State, seen.Message = t.observeKustomization(rollout, version)
	}
	return seen
}

func observeRepository(r *sourcev1.OCIRepository, version string) (v1alpha1.TargetState, string) {
	switch outranked := outranking(r); {
	case outranked != "":
		return v1alpha1.TargetConflict, fmt.Sprintf("%s outranks spec.ref.tag in Flux: remove it", outranked)
	case r.Spec.Suspend:
		return v1alpha1.TargetPending, "is suspended: resume it"
	case r.Spec.Reference == nil || r.Spec.Reference.Tag != version:
		return v1alpha1.TargetPending, ""
	}
	ready := apimeta.FindStatusCondition(r.Status.Conditions, meta.ReadyCondition)
	switch {
	case failed(r, r.Status.Conditions, r.Status.LastHandledReconcileAt):
		return v1alpha1.TargetFailed, ready.Message
	case isReady(r.Status.Conditions) && r.Status.ObservedGeneration == r.Generation && hasTag(r, version):
		return v1alpha1.TargetApplied, ""
	}
	return v1alpha1.TargetPending, ""
}

func (t Target) observeKustomization(rollout *v1alpha1.Rollout, version string) (v1alpha1.TargetState, string) {
	k := t.Kustomization
	if state, message := t.hindered(rollout); state != "" {
		return state, message
	}
	ready := apimeta.FindStatusCondition(k.Status.Conditions, meta.ReadyCondition)
	switch {
	case !t.Carries(version) || !t.sourceOffers(rollout, version):
		return v1alpha1.TargetPending, ""
	case failed(k, k.Status.Conditions, k.Status.LastHandledReconcileAt) && attempted(ready.Reason) && t.isCurrent(k.Status.LastAttemptedRevision):
		return v1alpha1.TargetFailed, ready.Message
	case isReady(k.Status.Conditions) && k.Status.ObservedGeneration == k.Generation && t.isCurrent(k.Status.LastAppliedRevision):
		return v1alpha1.TargetApplied, ""
	}
	return v1alpha1.TargetPending, ""
}

// hindered says what keeps a Kustomization from any version; no state if nothing does.
func (t Target) hindered(rollout *v1alpha1.Rollout) (v1alpha1.TargetState, string) {
	switch named, invalid := rolloutsNamedBy(t.Kustomization), t.invalid(); {
	case len(named) > mostRollouts:
		return v1alpha1.TargetConflict, fmt.Sprintf("its annotations name %d Rollouts, and at most %d may write into one Kustomization: "+
			"divide it into several", len(named), mostRollouts)
	case len(invalid) > 0:
		return v1alpha1.TargetConflict, fmt.Sprintf("Flux does not accept %q as the name of a variable: rename the annotation %s%s%s",
			invalid[0], v1alpha1.SubstituteAnnotationPrefix, invalid[0], v1alpha1.SubstituteAnnotationSuffix)
	case awaits(t.Kustomization, rollout):
		return v1alpha1.TargetConflict, "applies this Rollout and waits for it, while the Rollout waits for what it applies: " +
			"apply the Rollout from another Kustomization, or set spec.wait to false"
	case t.Kustomization.Spec.Suspend:
		return v1alpha1.TargetPending, "is suspended: resume it"
	case t.consumesMissingSource():
		return v1alpha1.TargetPending, fmt.Sprintf("its OCIRepository %s does not exist", t.Kustomization.Spec.SourceRef.Name)
	}
	return "", ""
}

// sourceOffers reports whether Flux has pulled the version into a source that the
// Rollout drives: what was applied from it before, or failed to be, says nothing of it.
func (t Target) sourceOffers(rollout *v1alpha1.Rollout, version string) bool {
	driven := t.Source != nil && t.Source.Namespace == rollout.Namespace && RolloutOf(t.Source) == rollout.Name
	return !driven || hasTag(t.Source, version)
}

// attempted tells a failure to apply from a pass that ended before it had tried, as
// kustomize-controller says by its reasons: it will try again by itself.
func attempted(reason string) bool {
	switch reason {
	case meta.DependencyNotReadyReason, meta.ArtifactFailedReason, meta.HealthCheckCanceledReason:
		return false
	}
	return true
}

// isCurrent reports whether a revision is the one that the source offers now.
// Of a source that is no OCIRepository the revision says nothing about our
// version: there the observed generation is the evidence.
func (t Target) isCurrent(revision string) bool {
	if t.Source == nil {
		return revision != ""
	}
	return t.Source.Status.Artifact != nil && t.Source.Status.Artifact.Revision == revision
}

func (t Target) consumesMissingSource() bool {
	_, ok := t.consumes()
	return ok && t.Source == nil
}

// ForeignSource names the OCIRepository of another namespace that the target
// consumes, "namespace/name"; empty if there is none.
func (t Target) ForeignSource() string {
	if t.Kustomization == nil {
		return ""
	}
	if key, ok := SourceOf(t.Kustomization); ok && key.Namespace != t.Kustomization.Namespace {
		return key.String()
	}
	return ""
}

// outranking names the field that Flux prefers to spec.ref.tag, if it is set.
func outranking(r *sourcev1.OCIRepository) string {
	switch ref := r.Spec.Reference; {
	case ref == nil:
		return ""
	case ref.Digest != "":
		return "spec.ref.digest"
	case ref.SemVer != "":
		return "spec.ref.semver"
	}
	return ""
}

// hasTag reports whether the repository's artifact was pulled by that tag.
func hasTag(r *sourcev1.OCIRepository, tag string) bool { return pulled(r, tag) != "" }

// pulled is the digest of the artifact that Flux has pulled by a tag; empty if it has
// not. Its revision is <tag>@<digest>.
func pulled(r *sourcev1.OCIRepository, tag string) string {
	if r.Status.Artifact == nil {
		return ""
	}
	by, digest, _ := strings.Cut(r.Status.Artifact.Revision, "@")
	if by != tag {
		return ""
	}
	return digest
}

// awaits reports whether the Kustomization applied the Rollout and waits for
// it to be ready: a cycle, if the Rollout in turn waits for the Kustomization.
func awaits(k *kustomizev1.Kustomization, rollout *v1alpha1.Rollout) bool {
	group := kustomizev1.GroupVersion.Group
	if rollout.Labels[group+"/name"] != k.Name || rollout.Labels[group+"/namespace"] != k.Namespace {
		return false
	}
	return k.Spec.Wait || slices.ContainsFunc(k.Spec.HealthChecks, func(ref meta.NamespacedObjectKindReference) bool {
		return ref.Kind == v1alpha1.RolloutKind && ref.Name == rollout.Name &&
			(ref.Namespace == rollout.Namespace || ref.Namespace == "" && k.Namespace == rollout.Namespace)
	})
}

// isReady is Flux's own notion: Ready, and neither Reconciling nor Stalled.
func isReady(conditions []metav1.Condition) bool {
	return apimeta.IsStatusConditionTrue(conditions, meta.ReadyCondition) &&
		!apimeta.IsStatusConditionTrue(conditions, meta.ReconcilingCondition) &&
		!apimeta.IsStatusConditionTrue(conditions, meta.StalledCondition)
}

// failed reports whether Flux tells of a failure of what the object says now. It
// stamps a condition with the generation at the end of a pass, though the pass may have
// begun before that was written. Which request for a reconcile it has handled is what it
// read at the beginning; each of our writes comes with a request of its own.
func failed(o client.Object, conditions []metav1.Condition, lastHandled string) bool {
	ready := apimeta.FindStatusCondition(conditions, meta.ReadyCondition)
	return ready != nil && ready.Status == metav1.ConditionFalse && ready.ObservedGeneration == o.GetGeneration() &&
		Handled(o, lastHandled)
}

// Handled reports whether Flux has begun a pass since the object was last requested to
// be reconciled, if it ever was.
func Handled(o client.Object, lastHandled string) bool {
	asked, ok := o.GetAnnotations()[meta.ReconcileRequestAnnotation]
	return !ok || asked == lastHandled
}
