// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/approvals"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// Input is everything that a decision depends on.
type Input struct {
	// Now is the time of the decision.
	Now time.Time
	// Rollout is the object as it was read, including its status.
	Rollout *v1alpha1.Rollout
	// ForeignAnnotations are those of deploy-user and deploy-message that a different user
	// than the one who chose the version has written. They belong to an earlier choice.
	ForeignAnnotations map[string]bool
	// ChosenBy is the field manager that chose the version; empty if that is not known.
	ChosenBy string
	// Policy is what the ImagePolicy offers.
	Policy releases.Policy
	// Metadata is what the registry reports about releases, as far as it is known.
	Metadata []releases.Metadata
	// MetadataOff is true if the controller does not read metadata from registries.
	MetadataOff bool
	// Gates are the gates and schedules that can hold releases.
	Gates Gates
	// Approvals are what people have said of releases.
	Approvals approvals.Approvals
	// Upstreams are the environments that must have proven a release.
	Upstreams upstream.Upstreams
	// Quarantines are the releases that failed elsewhere, or were recalled.
	Quarantines quarantined.Quarantines
	// Health is what the selected HealthChecks report.
	Health evidence.Health
	// Targets contains what the Flux objects of the Rollout have set and report.
	Targets content.Targets
}

// Gates are the objects that can hold releases.
type Gates struct {
	// Gates that name the Rollout, sorted by name, except the Copies.
	Gates []v1alpha1.RolloutGate
	// Cluster are the gates of the cluster that select the Rollout, sorted by name.
	Cluster []v1alpha1.ClusterRolloutGate
	// Copies are the gates that show the current state of the Schedules. They are shown, but
	// not evaluated: the schedules themselves are evaluated.
	Copies []v1alpha1.RolloutGate
	// Mirror is the gate that shows what is [Mirrored]; nil if there is none. It is not
	// evaluated either.
	Mirror *v1alpha1.RolloutGate
	// Schedules that select the Rollout, sorted by name.
	Schedules []Window
	// Problem is set if any of them could not be read or evaluated.
	Problem *verdict.Problem
}

// Window is the state of a schedule that selects the Rollout, at Input.Now.
type Window struct {
	// Schedule is the kind and name of the schedule.
	Schedule string
	// Open is true if promotions may start.
	Open bool
	// Message says whether the schedule is open, why, and until when.
	Message string
	// Until is when Open changes; zero means never.
	Until time.Time
	// Description is what its author says of it; empty if nothing.
	Description string
	// ManagedBy names the program that made it; empty if it is not known.
	ManagedBy string
	// Problem is set if the schedule could not be evaluated.
	Problem *verdict.Problem
}

// Content returns what is known of the content that the targets run.
func (in Input) Content() content.Running {
	return content.Running{Rollout: in.Rollout, Targets: in.Targets, Policy: in.Policy, Metadata: in.Metadata}
}

// holding returns the quarantines that hold something now.
func (in Input) holding() quarantined.Holding { return in.Quarantines.Holding(in.Policy.Image, in.Now) }

// registry returns what is known from the registry.
func (in Input) registry() releases.Registry {
	return releases.Registry{Images: in.Metadata, Marks: in.Rollout.Spec.RespectsBarriers()}
}

// grow returns the known releases with those that have become known, and what is worth a
// report about them.
func (in Input) grow() ([]v1alpha1.VersionInfo, []verdict.Note) {
	return releases.Grow(in.Rollout, in.Policy, in.registry(), in.Now)
}
