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
	// Problem is set if targets could not be read.
	Problem *Problem
}

// Target is one Flux object and what it reports about the release that the
// newest history entry names.
type Target struct {
	// Kind is OCIRepository or Kustomization.
	Kind string
	// Namespace of the object.
	Namespace string
	// Name of the object.
	Name string
	// State as it is observed at this moment.
	State v1alpha1.TargetState
	// Message says what is wrong and what to do; empty while all goes well.
	Message string
}

// String names the target in a message.
func (t Target) String() string { return fmt.Sprintf("%s %s/%s", t.Kind, t.Namespace, t.Name) }

// applied reports whether every target reports the release applied.
func (t Targets) applied() bool {
	return t.Problem == nil && !slices.ContainsFunc(t.All, func(target Target) bool {
		return target.State != v1alpha1.TargetApplied
	})
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
