// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// gatherTargets finds the targets and observes their state for the current release.
func (g Gatherer) gatherTargets(ctx context.Context, s *Snapshot) error {
	found, err := g.Targets(ctx, client.ObjectKeyFromObject(s.Rollout))
	if err == nil && !g.NoCrossNamespaceRefs { // else Flux lets none of them consume it
		found, err = targets.WithConsumersElsewhere(ctx, g.Client, found, g.HelmReleases)
	}
	if err == nil {
		for i := range found {
			found[i].Ranked = s.Policy.Image
		}
		s.Found, s.Targets.Pinned = found, targets.PinnedAmong(found)
		s.Policy.ByDigest = s.Targets.Pinned == content.AllPinned
		err = g.gatherUnrecorded(ctx, s)
	}
	if err != nil {
		return s.withoutTargets(err)
	}
	for _, t := range found {
		seen, err := g.observe(ctx, s, t)
		if err != nil {
			return s.withoutTargets(err)
		}
		s.Targets.All = append(s.Targets.All, seen)
	}
	return nil
}

// Targets returns the targets of a Rollout.
func (g Gatherer) Targets(ctx context.Context, rollout types.NamespacedName) ([]targets.Target, error) {
	found, err := targets.Find(ctx, g.Client, rollout, g.GitRepositories)
	if err == nil && g.HelmReleases {
		found, err = targets.WithHelmReleases(ctx, g.Client, rollout, found, g.GitRepositories)
	}
	if err != nil || !g.Artifacts {
		return found, err
	}
	return targets.WithArtifacts(ctx, g.Client, rollout, found, g.HelmReleases, g.GitRepositories)
}

// withoutTargets records that the targets could not be read. None is written.
func (s *Snapshot) withoutTargets(err error) error {
	s.Found, s.Input.Targets = nil, content.Targets{Problem: &verdict.Problem{
		Reason: v1alpha1.RolloutFailedReason, Message: "the targets could not be read" + unreadable.Why(err),
	}}
	return err
}

// observe returns the state of a target for the version of the newest entry, or of the
// possible first entry.
func (g Gatherer) observe(ctx context.Context, s *Snapshot, t targets.Target) (content.Target, error) {
	rollout, release := s.Rollout, s.release()
	t, err := g.observed(ctx, s, t)
	if err != nil {
		return content.Target{}, err
	}
	seen := g.permitted(t, t.Observe(rollout, release))
	if rollout.Current() == nil {
		seen = t.BeforeHistory(seen)
	}
	if seen.State == v1alpha1.TargetApplied && g.Memory != nil && g.Memory.Stale(t.Object()) {
		seen.State = v1alpha1.TargetPending // the cache does not show our write yet
	}
	seen = remember(rollout, t, seen, release)
	seen.NotStarted = g.notStarted(ctx, rollout, t, seen)
	if g.Memory == nil {
		return seen, nil
	}
	return g.Memory.Judge(ctx, rollout, t, seen)
}

// notStarted reports whether a target is unhealthy only because something was not started.
// It is asked only while a promotion runs: it decides what the failure says.
func (g Gatherer) notStarted(ctx context.Context, rollout *v1alpha1.Rollout, t targets.Target, seen content.Target) bool {
	if g.Started == nil || t.Repository != nil || !seen.Unhealthy || !rollout.Current().State().Running() {
		return false
	}
	return g.Started.NotStarted(ctx, subjectOf(t))
}

// subjectOf returns a target as a HealthCheck names it.
func subjectOf(t targets.Target) kustomization.Subject {
	return kustomization.Subject{Kind: t.Kind(), NamespacedName: client.ObjectKeyFromObject(t.Object())}
}

// permitted reports a conflict if the source of a target is in another namespace and that
// is not allowed.
func (g Gatherer) permitted(t targets.Target, seen content.Target) content.Target {
	if source, foreign := t.ForeignSource(); g.NoCrossNamespaceRefs && foreign {
		seen.State, seen.Reason = v1alpha1.TargetConflict, v1alpha1.TargetAccessDenied
		article := "an"
		if source.Kind == sourcev1.GitRepositoryKind {
			article = "a"
		}
		seen.Message = fmt.Sprintf("its source is %s, but references across namespaces are not allowed: use %s %s of this namespace", source, article, source.Kind)
	}
	if artifact := t.ForeignArtifact(); g.NoCrossNamespaceRefs && artifact != "" {
		seen.State, seen.Reason = v1alpha1.TargetConflict, v1alpha1.TargetAccessDenied
		seen.Message = fmt.Sprintf("it takes the release by ExternalArtifact %s, but references across namespaces are not allowed: "+
			"use an ArtifactGenerator of this namespace", artifact)
	}
	return seen
}

// remember keeps the last known failure of a target while Flux tries again, and why Flux
// could not get what it should apply. It drops a rejected write once there is nothing left
// to write.
func remember(rollout *v1alpha1.Rollout, t targets.Target, seen content.Target, release targets.Release) content.Target {
	if seen.State != v1alpha1.TargetPending || seen.Reason != "" {
		return seen
	}
	was := seen.StoredIn(rollout.Status.Targets, release.Tag)
	if was == nil || was.State != v1alpha1.TargetFailed && !stillLacks(t, was, release) {
		return seen
	}
	if written := !t.Writable(release) && !t.OwnsTooMuch(); written && was.Reason == v1alpha1.TargetRejected {
		return seen
	}
	seen.State, seen.Reason, seen.Message = was.State, was.Reason, was.Message
	seen.Unhealthy = was.Reason == v1alpha1.TargetUnhealthy
	seen.Shared = seen.Unhealthy && t.IsShared()
	return seen
}

// stillLacks reports whether Flux could not get what a target should apply, and has not
// come further since then.
func stillLacks(t targets.Target, was *v1alpha1.TargetStatus, release targets.Release) bool {
	return was.State == v1alpha1.TargetPending && was.Reason == v1alpha1.TargetArtifactFailed && t.LacksArtifact(release)
}

// release returns the release that targets should have; empty if it is not known yet.
func (s *Snapshot) release() targets.Release {
	switch current := s.Rollout.Current(); {
	case current != nil:
		return targets.ReleaseOf(current)
	case len(s.Targets.Carried) == 1: // of a history that is empty
		return targets.Release{Tag: s.Targets.Carried[0], Adopted: true}
	}
	return targets.Release{}
}

// gatherUnrecorded reads, while there is no history, which versions the targets have:
// those written by the controller and, with spec.firstRelease Applied, those written by
// anyone. While the history is outdated, it reads the latter. What may become an entry of
// the history is read past the caches, because it must not come from an old copy. That
// happens once in a Rollout's life, and whenever an old status was restored.
func (g Gatherer) gatherUnrecorded(ctx context.Context, s *Snapshot) error {
	isOutdated := s.isOutdated()
	if len(s.Rollout.Status.History) > 0 && !isOutdated {
		return nil
	}
	found := versions{rollout: s.Rollout.Name}
	for _, t := range s.Found {
		if !isOutdated || s.Rollout.AsksToAdopt() {
			live, err := t.Live(ctx, g.Live)
			switch {
			case apierrors.IsNotFound(err):
				continue
			case err != nil:
				return err
			}
			t = live
		}
		found.add(t)
	}
	if !isOutdated {
		s.Targets.Owned = found.written()
	}
	if isOutdated || s.Rollout.Spec.FirstRelease == v1alpha1.FirstReleaseApplied {
		s.Targets.Carried = found.carried()
	}
	return nil
}

// versions are those that the targets of a Rollout have. The targets are read one by one.
type versions struct {
	rollout string

	owned    []string // by the controller's field manager
	promoted []string // of targets with the id of a promotion
	all      []string
}

func (v *versions) add(t targets.Target) {
	has := t.Versions()
	v.owned, v.all = append(v.owned, t.Owned()...), append(v.all, has...)
	if targets.PromotionOf(t.Object(), v.rollout) > 0 {
		v.promoted = append(v.promoted, has...)
	}
}

// written returns the versions that the controller has written: those that its field
// manager owns. If it owns none, as after a restore by another tool, they are those of the
// targets that have the id of a promotion.
func (v *versions) written() []string {
	if len(v.owned) == 0 {
		return v.promoted
	}
	return v.owned
}

// carried returns the versions of targets, each once.
func (v *versions) carried() []string {
	return slices.Compact(slices.Sorted(slices.Values(v.all)))
}

// isOutdated reports whether a newer promotion than those of the history has written a
// target.
func (s *Snapshot) isOutdated() bool {
	return slices.ContainsFunc(s.Found, func(t targets.Target) bool {
		return content.IsOutdated(s.Rollout.Status.History, targets.PromotionOf(t.Object(), s.Rollout.Name))
	})
}
