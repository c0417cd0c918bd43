// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Targets are the Flux objects that carry the Rollout's release, and those
// that apply what they carry.
type Targets struct {
	// All of them, sorted by kind, namespace and name.
	All []Target
	// Owned are the versions in those fields that the controller's field
	// manager owns. It is gathered only while the history is empty.
	Owned []string
	// Carried are the versions in the fields of the targets, whoever set them, each
	// once. They are gathered only while the history is empty and spec.firstRelease
	// is Applied. If there is one, the State of each target is about that version.
	Carried []string
	// Problem is set if targets could not be read.
	Problem *Problem
}

// Target is one Flux object and what it reports about the release that the
// newest history entry names.
type Target struct {
	// Kind is OCIRepository, Kustomization or HelmRelease.
	Kind string
	// Namespace of the object.
	Namespace string
	// Name of the object.
	Name string
	// State as it is observed at this moment.
	State v1alpha1.TargetState
	// Message says what is wrong and what to do; empty while all goes well.
	Message string
	// Unset is true if a field of the target for the version is empty. It is known
	// when Targets.Carried is.
	Unset bool
	// Image that an OCIRepository pulls, in the form of Policy.Image.
	Image string
	// Digest of what Flux has pulled by the tag of an OCIRepository that is Applied.
	Digest string
	// Mismatch is true if the State is a Conflict because that is not the release.
	Mismatch bool
	// Moved says that the tag was pushed again after the target had applied the
	// release, and that Flux has pulled that; empty if it was not.
	Moved string
}

// String names the target in a message.
func (t Target) String() string { return fmt.Sprintf("%s %s/%s", t.Kind, t.Namespace, t.Name) }

// StoredIn returns what a status says of the target with a version; nil if it says
// nothing.
func (t Target) StoredIn(targets []v1alpha1.TargetStatus, version string) *v1alpha1.TargetStatus {
	for i := range targets {
		s := &targets[i]
		if s.Kind == t.Kind && s.Namespace == t.Namespace && s.Name == t.Name && s.Version == version {
			return s
		}
	}
	return nil
}

// applied reports whether every target reports the release applied.
func (t Targets) applied() bool {
	return t.Problem == nil && !slices.ContainsFunc(t.All, func(target Target) bool {
		return target.State != v1alpha1.TargetApplied
	})
}

// mismatch reports whether a target has pulled what is not the release, as far as it is
// known: of an index it is not known yet, maybe, which images it lists.
func (t Targets) mismatch() bool {
	return slices.ContainsFunc(t.All, func(target Target) bool { return target.Mismatch })
}

// ownedVersions lists the distinct versions that the controller once wrote.
func (t Targets) ownedVersions() []string {
	owned := slices.Clone(t.Owned)
	slices.Sort(owned)
	return slices.Compact(owned)
}

// laggards says of each target that is not applied what keeps it.
func (t Targets) laggards() []string {
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
