// SPDX-License-Identifier: Apache-2.0

package content

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Targets are the Flux objects that have the Rollout's release in a field, and those that
// apply these objects.
type Targets struct {
	// All of them, sorted by kind, namespace and name.
	All []Target
	// Owned are the versions in the fields that the controller has written: those that its
	// field manager owns, or else those of targets whose Promotion is known. They are
	// gathered only while the history is empty.
	Owned []string
	// Carried are the versions in the fields of the targets, no matter who set them, each
	// once. They are gathered only while the targets Outdate the history, or while it is
	// empty and spec.firstRelease is Applied. In the second case, if there is exactly one,
	// the State of each target is about that version.
	Carried []string
	// Pinned says into how many of the targets that the Rollout writes it also writes the
	// digest of the release.
	Pinned Pinned
	// Problem is set if targets could not be read.
	Problem *verdict.Problem
}

// Pinned is how many targets get the digest of a release in addition to its tag.
type Pinned int

const (
	// NonePinned means that Flux resolves the tag in every target.
	NonePinned Pinned = iota
	// SomePinned means that Flux resolves the tag in some targets.
	SomePinned
	// AllPinned means that a tag that is pushed again changes nothing: the new content
	// is another release.
	AllPinned
)

// Target is one Flux object and what it reports about the release of the newest history
// entry.
type Target struct {
	// Kind is OCIRepository, GitRepository, Kustomization or HelmRelease.
	Kind string
	// Namespace of the object.
	Namespace string
	// Name of the object.
	Name string
	// State as it is observed now.
	State v1alpha1.TargetState
	// Reason is why the target is in this state; empty while there is nothing to say.
	Reason v1alpha1.TargetReason
	// Message describes the problem and what to do about it; empty while there is none.
	Message string
	// Promotion is the id of the history entry for which the controller wrote the target
	// last; zero if it is not known.
	Promotion int64
	// Unset is true if a version field of the target is empty. It is known whenever
	// Targets.Carried is known.
	Unset bool
	// Pulled is the revision of the artifact that a repository has, whatever its tag is
	// now: Flux keeps it until it has pulled another one. It is gathered only while the
	// history is empty.
	Pulled string
	// Image that an OCIRepository pulls, in the form of Policy.Image. A GitRepository has none,
	// so its content is compared with nothing but what it has pulled by the tag before.
	Image string
	// Digest of the content that Flux has pulled by the tag, for an OCIRepository that is
	// Applied; for a GitRepository the commit.
	Digest string
	// Mismatch is true if the State is a Conflict because that content is not the release.
	Mismatch bool
	// Changes is when time alone ends a Mismatch or changes its message; zero means never.
	Changes time.Time
	// PulledOnly is true for a repository that nothing is known to apply.
	PulledOnly bool
	// Unhealthy is true if the State is Failed because Flux has applied the release, and
	// what it applied did not become healthy.
	Unhealthy bool
	// NotStarted is true if it is Unhealthy only because nothing of it was started in time,
	// and nothing that did run has failed.
	NotStarted bool
	// Waits is for how long Flux waits for the health of what the target applies.
	Waits time.Duration
	// GaveUp is true if the State is Failed and Flux does not try again by itself.
	GaveUp bool
	// Shared is true if other Rollouts deploy by the same object, too.
	Shared bool
	// Moved reports that the tag was pushed again after the target had applied the release,
	// and that Flux has pulled the new content; empty if this has not happened.
	Moved string
}

// String returns the name of the target for a message.
func (t Target) String() string { return fmt.Sprintf("%s %s/%s", t.Kind, t.Namespace, t.Name) }

// NotTried reports whether a target with a state and a reason waits because Flux has not
// tried to apply the release. The message is then in the words of Flux.
func NotTried(state v1alpha1.TargetState, reason v1alpha1.TargetReason) bool {
	switch reason {
	case v1alpha1.TargetDependencyNotReady, v1alpha1.TargetArtifactFailed, v1alpha1.TargetAccessDenied, v1alpha1.TargetNotApplied:
		return state == v1alpha1.TargetPending
	default:
		return false
	}
}

// StoredIn returns the status entry of the target with a version; nil if there is none.
func (t Target) StoredIn(targets []v1alpha1.TargetStatus, version string) *v1alpha1.TargetStatus {
	for i := range targets {
		s := &targets[i]
		if s.Kind == t.Kind && s.Namespace == t.Namespace && s.Name == t.Name && s.Version == version {
			return s
		}
	}
	return nil
}

// AreApplied reports whether every target has applied the release.
func (t Targets) AreApplied() bool {
	return t.Problem == nil && !slices.ContainsFunc(t.All, func(target Target) bool {
		return target.State != v1alpha1.TargetApplied
	})
}

// AreUnhealthy reports whether Flux says that what it applied of the release is not healthy.
func (t Targets) AreUnhealthy() bool {
	return slices.ContainsFunc(t.All, func(target Target) bool { return target.Unhealthy })
}

// LongestWait returns for how long Flux may wait for the health of what it applies.
func (t Targets) LongestWait() time.Duration {
	var longest time.Duration
	for _, target := range t.All {
		longest = max(longest, target.Waits)
	}
	return longest
}

// GaveUp reports whether Flux does not try again by itself with a target.
func (t Targets) GaveUp() bool {
	return slices.ContainsFunc(t.All, func(target Target) bool { return target.GaveUp })
}

// Mismatch reports whether a target has pulled content that is not the release, as far as
// is known. For an index, the images that it lists may not be known yet.
func (t Targets) Mismatch() bool {
	return slices.ContainsFunc(t.All, func(target Target) bool { return target.Mismatch })
}

// PulledOnly returns how many repositories there are that nothing is known to apply.
func (t Targets) PulledOnly() int { return len(t.pulledOnly()) }

func (t Targets) pulledOnly() []string {
	var names []string
	for _, target := range t.All {
		if target.PulledOnly {
			names = append(names, target.String())
		}
	}
	return names
}

// Evidence says what is proven once every target has applied the release. Of a
// repository that nothing is known to apply, it is no more than that Flux has pulled it.
func (t Targets) Evidence() string {
	switch pulled := t.pulledOnly(); len(pulled) {
	case 0:
		return "applied"
	case len(t.All):
		return "pulled"
	default:
		return fmt.Sprintf("applied (%s only pulled)", truncate.List(pulled))
	}
}

// Outdated returns, for each target that has not applied the release, what it waits for.
func (t Targets) Outdated() []string {
	var all []string
	if t.Problem != nil {
		all = append(all, t.Problem.Message)
	}
	for _, target := range t.All {
		if target.State == v1alpha1.TargetApplied {
			continue
		}
		if target.Message == "" {
			all = append(all, target.String()+" has not applied it")
			continue
		}
		all = append(all, fmt.Sprintf("%s: %s", target, target.Message))
	}
	return all
}

// Condemns reports whether the target says something about the release: it was applied, it
// ran, and it did not become healthy.
func (t Target) Condemns() bool { return t.Unhealthy && !t.NotStarted && !t.Shared }
