// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"slices"
	"strconv"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/imagename"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Observe reports the progress of the target towards the release. It only uses
// generations and revisions: a Ready condition proves nothing about a version that the
// object has not processed yet.
func (t Target) Observe(rollout *v1alpha1.Rollout, release Release) content.Target {
	seen := content.Target{Kind: t.Kind(), Namespace: t.Object().GetNamespace(), Name: t.Object().GetName(), Image: t.image()}
	seen.Promotion, seen.Waits = PromotionOf(t.Object(), rollout.Name), t.waits()
	switch {
	case content.IsOutdated(rollout.Status.History, seen.Promotion):
		seen = outdates(seen.Promotion).into(seen)
	case release.Tag != "" && !releases.IsTag(release.Tag):
		seen = invalidVersion(release.Tag).into(seen)
	case t.isDeleting():
		seen = deleting.into(seen)
	case t.Repository != nil:
		seen = t.observeRepository(release).into(seen)
		if seen.State == v1alpha1.TargetApplied {
			seen.Digest = pulled(t.Repository, release)
		}
	case t.HelmRelease != nil:
		seen = t.observeHelmRelease(rollout, release).into(seen)
	default:
		seen = t.observeKustomization(rollout, release).into(seen)
	}
	seen.Unhealthy = seen.Reason == v1alpha1.TargetUnhealthy
	seen.Shared = seen.Unhealthy && t.IsShared()
	seen.GaveUp = seen.State == v1alpha1.TargetFailed && t.gaveUp(rollout)
	return seen
}

// waits returns for how long Flux waits for the health of what the target applies.
func (t Target) waits() time.Duration {
	switch k := t.Kustomization; {
	case k != nil && (k.Spec.Wait || len(k.Spec.HealthChecks) > 0):
		return k.GetTimeout()
	case t.HelmRelease != nil && !t.HelmRelease.GetUpgrade().DisableWait:
		return t.HelmRelease.GetUpgrade().GetTimeout(t.HelmRelease.GetTimeout()).Duration
	}
	return 0
}

// image returns the image that an OCIRepository pulls. It is empty for other targets.
func (t Target) image() string {
	if t.Repository == nil || IsGit(t.Repository) {
		return ""
	}
	return imagename.Canonical(strings.TrimPrefix(viewOf(t.Repository).url, sourcev1.OCIRepositoryPrefix))
}

func outdates(promotion int64) observation {
	return conflict(v1alpha1.TargetHistoryOutdated, "was written by promotion #%d, which the history does not have", promotion)
}

func invalidVersion(version string) observation {
	return conflict(v1alpha1.TargetInvalidVersion,
		"status.history names %s, which cannot be a tag and is not written: set spec.wantedVersion to the right one",
		strconv.Quote(truncate.Text(version, 80)))
}

func (t Target) observeRepository(release Release) observation {
	r, spec := t.Repository, viewOf(t.Repository)
	misplaced, other := t.misplacedDigest(), t.pullsOther()
	switch outranked := t.outranking(release); {
	case !misplaced.isNothing():
		return misplaced
	case !other.isNothing():
		return other
	case outranked != "":
		return conflict(v1alpha1.TargetOutranked, "%s outranks spec.ref.tag in Flux: remove it", outranked)
	case spec.suspended:
		return suspended
	case release.Tag == "" || !t.Carries(release):
		return pending
	}
	switch {
	case failed(r, r.GetConditions(), spec.lastHandled):
		return notPulled(r)
	case isReady(r.GetConditions()) && spec.observed == r.GetGeneration() && pulled(r, release) != "":
		return applied
	}
	return pending
}

// notPulled returns why Flux has not pulled the release, in the words of Flux. A tag that is
// not in Git is no failure, because many pipelines push the image first, and neither is a
// server that does not answer. A signature that is not accepted is one.
func notPulled(r Repository) observation {
	ready := apimeta.FindStatusCondition(r.GetConditions(), meta.ReadyCondition)
	if IsGit(r) && !rejectsSignature(ready.Reason) {
		return waiting(v1alpha1.TargetArtifactFailed, "%s", ready.Message)
	}
	return failure(v1alpha1.TargetNotPulled, ready.Message)
}

// rejectsSignature reports whether a reason of source-controller is about what it has found
// in Git: it is not signed, or by nobody who may.
func rejectsSignature(reason string) bool {
	switch reason {
	case "InvalidGitObject", "InvalidTagSignature", "InvalidCommitSignature":
		return true
	}
	return false
}

func (t Target) observeKustomization(rollout *v1alpha1.Rollout, release Release) observation {
	k := t.Kustomization
	if found := t.hindered(rollout); !found.isNothing() {
		return found
	}
	ready := apimeta.FindStatusCondition(k.Status.Conditions, meta.ReadyCondition)
	failed := failed(k, k.Status.Conditions, k.Status.LastHandledReconcileAt)
	switch {
	case t.awaitsDigest(release):
		return digestUnknown(release)
	case !t.offers(rollout, release):
		return t.lacking(release)
	case failed && attempted(ready.Reason) && t.isCurrent(k.Status.LastAttemptedRevision):
		return failure(t.reasonOf(rollout, *ready), ready.Message)
	case failed:
		return t.untried(ready)
	case isReady(k.Status.Conditions) && k.Status.ObservedGeneration == k.Generation && t.isCurrent(k.Status.LastAppliedRevision):
		return applied
	}
	return pending
}

// reasonOf returns why a Kustomization has failed. It is unhealthy only if it has applied
// the version, and waited in vain for the health of what it applied. A Kustomization with
// a variable has the same revision before and after the write. There, only the reconcile
// request that was written with the version proves which pass it was.
func (t Target) reasonOf(rollout *v1alpha1.Rollout, ready metav1.Condition) v1alpha1.TargetReason {
	_, asked := t.Kustomization.Annotations[meta.ReconcileRequestAnnotation]
	if (asked || t.sourceIsOf(rollout)) && fluxSaysUnhealthy(ready) {
		return v1alpha1.TargetUnhealthy
	}
	return v1alpha1.TargetNotApplied
}

// fluxSaysUnhealthy reports whether kustomize-controller has waited in vain for the health
// of what it applied. It reads a text of Flux, because the reason alone does not show
// that: kustomize-controller also has it if spec.healthChecks is invalid, or if it could
// not store that it waits.
func fluxSaysUnhealthy(ready metav1.Condition) bool {
	const begin = "health check failed after "
	message := ready.Message
	return ready.Reason == meta.HealthCheckFailedReason && len(message) >= len(begin) && strings.EqualFold(message[:len(begin)], begin)
}

// hindered returns what keeps a Kustomization from any version.
func (t Target) hindered(rollout *v1alpha1.Rollout) observation {
	switch many, twice, invalid := tooMany(t.Kind(), t.Kustomization), t.annotatedTwice(), t.invalid(); {
	case !many.isNothing():
		return many
	case !twice.isNothing():
		return twice
	case len(invalid) > 0:
		return conflict(v1alpha1.TargetInvalidField, "Flux does not accept %q as the name of a variable: rename the annotation %s",
			invalid[0], t.annotationOf(invalid[0]))
	case awaits(t.Kustomization, rollout):
		return conflict(v1alpha1.TargetDependencyCycle, "applies this Rollout and waits for it, while the Rollout waits for what it applies: "+
			"apply the Rollout from another Kustomization, or set spec.wait to false")
	case t.Kustomization.Spec.Suspend:
		return suspended
	case t.consumesMissingSource():
		return missingSource(t.sourceName())
	}
	return observation{}
}

// sourceOffers reports whether Flux has pulled the release into a source that the Rollout
// writes. Until then, the results of the target are about an earlier version.
func (t Target) sourceOffers(rollout *v1alpha1.Rollout, release Release) bool {
	if t.Artifact != nil {
		return t.Artifact.holds(release, t.Observed)
	}
	return !t.sourceIsOf(rollout) || pulled(t.Source, release) != ""
}

// sourceIsOf reports whether the Rollout writes the source that the target consumes.
func (t Target) sourceIsOf(rollout *v1alpha1.Rollout) bool {
	return t.Artifact != nil || t.Source != nil && t.Source.GetNamespace() == rollout.Namespace && RolloutOf(t.Source) == rollout.Name
}

// attempted reports whether a failure is about applying. It returns false for a pass that
// ended before it tried: kustomize-controller shows that in its reasons, and tries again
// without any action.
func attempted(reason string) bool {
	switch reason {
	case meta.DependencyNotReadyReason, meta.ArtifactFailedReason, meta.HealthCheckCanceledReason:
		return false
	}
	return true
}

// isCurrent reports whether a revision is the one that the source offers now. If the
// source is none that a Rollout may write, the revision is unrelated to our version, and the
// observed generation is the evidence.
func (t Target) isCurrent(revision string) bool {
	if t.Artifact != nil {
		return revision != "" && t.Artifact.revision() == revision
	}
	if t.Source == nil {
		return revision != ""
	}
	offered := revisionOf(t.Source)
	return offered != "" && offered == revision
}

func (t Target) consumesMissingSource() bool {
	ref, ok := t.consumes()
	return ok && !ref.isGit() && t.Source == nil
}

// ForeignSource returns the Repository of another namespace that the target consumes, and
// whether there is one. A GitRepository that no Rollout writes is none.
func (t Target) ForeignSource() (Ref, bool) {
	ref, ok := ConsumedElsewhere(t.Object())
	return ref, ok && (!ref.isGit() || t.Source != nil)
}

// outranking returns the set field that takes precedence over spec.ref.tag in Flux, and that
// the Rollout does not write. A digest that somebody else has set is only replaced by
// another one.
func (t Target) outranking(release Release) string {
	ref := viewOf(t.Repository)
	replaced := len(t.Digests) > 0 && (release.Digest != "" || release.Adopted)
	switch {
	case ref.digest != "" && !replaced && !t.ownsDigest():
		return "spec.ref.digest"
	case len(ref.prefers) > 0:
		return ref.prefers[0]
	}
	return ""
}

// pulled returns the digest of what Flux has pulled, if that is the release, or its commit.
// The revision of the artifact is <tag>@<digest>, and the digest alone if spec.ref has one.
func pulled(r Repository, release Release) string {
	revision := revisionOf(r)
	if pinned := viewOf(r).digest; pinned != "" {
		if revision == pinned && (release.Adopted || pinned == release.Digest) {
			return pinned
		}
		return ""
	}
	by, digest, _ := strings.Cut(revision, "@")
	if by != release.Tag {
		return ""
	}
	return digest
}

// awaits reports whether the Kustomization applied the Rollout and waits until it is
// ready. This is a cycle if the Rollout also waits for the Kustomization.
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

// isReady follows Flux's definition: Ready, and neither Reconciling nor Stalled.
func isReady(conditions []metav1.Condition) bool {
	return apimeta.IsStatusConditionTrue(conditions, meta.ReadyCondition) &&
		!apimeta.IsStatusConditionTrue(conditions, meta.ReconcilingCondition) &&
		!apimeta.IsStatusConditionTrue(conditions, meta.StalledCondition)
}

// failed reports whether Flux reports a failure of the current spec. At the end of a
// pass, Flux sets the generation in a condition, although the pass may have started
// before that generation was written. The handled reconcile request is the one that Flux
// read at the start of the pass, and each of our writes contains a new request.
func failed(o client.Object, conditions []metav1.Condition, lastHandled string) bool {
	ready := apimeta.FindStatusCondition(conditions, meta.ReadyCondition)
	return ready != nil && ready.Status == metav1.ConditionFalse && ready.ObservedGeneration == o.GetGeneration() &&
		Handled(o, lastHandled)
}

// Handled reports whether Flux has started a pass since the last reconcile request of the
// object. It returns true if there was no request.
func Handled(o client.Object, lastHandled string) bool {
	asked, ok := o.GetAnnotations()[meta.ReconcileRequestAnnotation]
	return !ok || asked == lastHandled
}
