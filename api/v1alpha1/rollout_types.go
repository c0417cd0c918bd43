// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RolloutKind is the kind of a Rollout.
const RolloutKind = "Rollout"

// RolloutSpec defines which releases an environment gets, and which conditions apply
// before and after it gets one.
type RolloutSpec struct {
	// releasesImagePolicy names the Flux ImagePolicy, in the Rollout's own namespace,
	// whose latestRef announces new releases.
	// +required
	ReleasesImagePolicy LocalObjectReference `json:"releasesImagePolicy"`

	// wantedVersion pins the Rollout to a tag, whether or not the release is known. A pin
	// bypasses gates and a running or failed bake. An older tag is a rollback. Without
	// the field, the controller chooses the release again. An empty string pins nothing.
	// +optional
	WantedVersion *string `json:"wantedVersion,omitempty"`

	// versionHistoryLimit is how many history entries are kept. Defaults to 10.
	// +kubebuilder:validation:Minimum=1
	// +optional
	VersionHistoryLimit *int32 `json:"versionHistoryLimit,omitempty"`

	// availableReleasesRetentionDays is how many days after its creation a release stays
	// in status.availableReleases. Defaults to 7.
	// +kubebuilder:validation:Minimum=1
	// +optional
	AvailableReleasesRetentionDays *int32 `json:"availableReleasesRetentionDays,omitempty"`

	// availableReleasesMinCount is how many of the newest releases always stay in
	// status.availableReleases. Defaults to 30.
	// +kubebuilder:validation:Minimum=1
	// +optional
	AvailableReleasesMinCount *int32 `json:"availableReleasesMinCount,omitempty"`

	// bakeTime is how long a release must stay healthy before it counts as a success. The
	// time starts when the release is applied and healthy. Without it, a release succeeds
	// as soon as it is applied and healthy.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration of at most 2562047 hours"
	// +optional
	BakeTime *metav1.Duration `json:"bakeTime,omitempty"`

	// deployTimeout is how long after its promotion a release may take to become applied
	// and healthy. After that, it has failed. Without it, the controller waits with no
	// time limit.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration of at most 2562047 hours"
	// +optional
	DeployTimeout *metav1.Duration `json:"deployTimeout,omitempty"`

	// releaseUpdateInterval limits how often a new release is promoted automatically. An
	// automatic promotion starts no earlier than this interval after the promotion before
	// it. If it is absent, there is no limit.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration of at most 2562047 hours"
	// +optional
	ReleaseUpdateInterval *metav1.Duration `json:"releaseUpdateInterval,omitempty"`

	// releaseStrategy defines which candidate is promoted next. Newest, the default,
	// promotes the newest eligible candidate and skips those before it. Next promotes one
	// candidate after another in the policy's order and never skips one: while the next
	// one is held back, all newer ones wait.
	// +optional
	ReleaseStrategy ReleaseStrategy `json:"releaseStrategy,omitempty"`

	// firstRelease defines how the history begins while it is empty. Newest, the default,
	// promotes the newest release that is named by every passing gate that names versions, and
	// goes past all other gates: an environment without any release has nothing to protect.
	// Applied is for an application that already runs. The version that its targets have
	// and Flux has applied becomes the first entry, no matter who set it. Gates and
	// schedules apply from then on. A version that a user chooses is promoted first in
	// both cases.
	// +optional
	FirstRelease FirstRelease `json:"firstRelease,omitempty"`

	// environmentRef names the Environment, in the Rollout's own namespace, that says which
	// environments a release must have passed. While that Environment does not exist, or
	// names another Rollout, nothing is promoted automatically. Without the field, an
	// Environment that names this Rollout counts as soon as it exists.
	// +optional
	EnvironmentRef *LocalObjectReference `json:"environmentRef,omitempty"`

	// healthCheckSelector selects the HealthChecks that a release must pass.
	// +optional
	HealthCheckSelector *HealthCheckSelector `json:"healthCheckSelector,omitempty"`

	// targetHealth defines whether what Flux has applied must be rolled out: everything in
	// the inventories of the target Kustomizations and HelmReleases, before anything else
	// is measured, and throughout the bake. Required always asks for that. Without the
	// field, a Rollout asks for it if it selects a HealthCheck that is measured and
	// enforced. The controller then keeps a HealthCheck of its own for each target that no
	// selected one of the class kustomization names.
	// +optional
	TargetHealth TargetHealth `json:"targetHealth,omitempty"`

	// rollback defines when the Rollout goes back by itself to the last release that
	// succeeded, after a promotion has failed. Without it, a failed release stays until a
	// user or a newer choice replaces it.
	// +optional
	Rollback *RolloutRollback `json:"rollback,omitempty"`

	// quarantine defines whether releases that failed here are reported to
	// ReleaseQuarantines, and whether those of others are obeyed. Without it, nothing is
	// reported, and all are obeyed.
	// +optional
	Quarantine *RolloutQuarantine `json:"quarantine,omitempty"`

	// suspend stops the controller from promoting releases, writing targets and
	// evaluating bakes until it is false again. Defaults to false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// ReleaseStrategy defines which of several candidates is promoted.
// +kubebuilder:validation:Enum=Newest;Next
type ReleaseStrategy string

const (
	// ReleaseNewest promotes the newest eligible candidate. It is the default.
	ReleaseNewest ReleaseStrategy = "Newest"
	// ReleaseNext promotes the candidate that follows the current release.
	ReleaseNext ReleaseStrategy = "Next"
)

// FirstRelease defines how the history of a Rollout begins.
// +kubebuilder:validation:Enum=Newest;Applied
type FirstRelease string

const (
	// FirstReleaseNewest promotes the newest release. It is the default.
	FirstReleaseNewest FirstRelease = "Newest"
	// FirstReleaseApplied makes the version that the targets have applied the first
	// entry.
	FirstReleaseApplied FirstRelease = "Applied"
)

// TargetHealth defines whether what Flux has applied must be rolled out.
// +kubebuilder:validation:Enum=Required
type TargetHealth string

// TargetHealthRequired asks that everything that the targets have applied is rolled out.
const TargetHealthRequired TargetHealth = "Required"

// LocalObjectReference names an object in the namespace of the object that refers to it.
// +structType=atomic
type LocalObjectReference struct {
	// name is the name of the object.
	// +kubebuilder:default=""
	// +optional
	Name string `json:"name,omitempty"`
}

// HealthCheckSelector selects HealthChecks by their labels and those of their namespace.
// The long form sets selector. The short form sets its matchLabels and matchExpressions
// directly. Without any selector, no HealthCheck is selected. An empty selector selects
// all HealthChecks in scope.
// +kubebuilder:validation:XValidation:rule="!has(self.selector) || !(has(self.matchLabels) || has(self.matchExpressions))",message="give either selector, or matchLabels and matchExpressions, not both"
type HealthCheckSelector struct {
	// selector selects HealthChecks by their labels. An empty selector selects all.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// namespaceSelector extends the scope from the Rollout's own namespace to every
	// namespace whose labels match.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// matchLabels is the short form of selector.matchLabels.
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`

	// matchExpressions is the short form of selector.matchExpressions.
	// +listType=atomic
	// +optional
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// LabelSelector returns the selector of either form, or nil if there is none.
func (s *HealthCheckSelector) LabelSelector() *metav1.LabelSelector {
	switch {
	case s == nil:
		return nil
	case s.Selector != nil:
		return s.Selector
	case s.MatchLabels != nil || s.MatchExpressions != nil:
		return &metav1.LabelSelector{MatchLabels: s.MatchLabels, MatchExpressions: s.MatchExpressions}
	}
	return nil
}

// Rollout promotes releases from an OCI registry to one environment.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=all;fluxcd;fluxcd-rollouts
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.history[0].version.tag`
// +kubebuilder:printcolumn:name="Since",type=date,JSONPath=`.status.history[0].timestamp`,description="When the version was promoted"
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.history[0].message`,priority=1
// +kubebuilder:printcolumn:name="BakeStatus",type=string,JSONPath=`.status.history[0].bakeStatus`
// +kubebuilder:printcolumn:name="BakeTime",type=string,JSONPath=`.status.history[0].bakeStartTime`,priority=1
// +kubebuilder:printcolumn:name="Gates",type=string,JSONPath=`.status.conditions[?(@.type=="GatesPassing")].status`
// +kubebuilder:printcolumn:name="Candidate",type=string,JSONPath=`.status.releaseCandidates[0].tag`,description="The newest release that is not deployed yet"
// +kubebuilder:printcolumn:name="Suspended",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Pinned",type=string,JSONPath=`.spec.wantedVersion`,description="The version that spec.wantedVersion pins"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Rollout struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines which releases are promoted, and under which conditions.
	// +optional
	Spec RolloutSpec `json:"spec,omitempty"`
	// status is the state that the controller has observed, and what it has decided and
	// done.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status RolloutStatus `json:"status,omitempty"`
}

// RolloutList is a list of Rollouts.
//
// +kubebuilder:object:root=true
type RolloutList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Rollout `json:"items"`
}

// GetConditions returns the conditions. Flux's condition functions call it.
func (r *Rollout) GetConditions() []metav1.Condition { return r.Status.Conditions }

// SetConditions replaces the conditions. Flux's condition functions call it.
func (r *Rollout) SetConditions(conditions []metav1.Condition) { r.Status.Conditions = conditions }

// Current returns the newest history entry, or nil before the first promotion.
func (r *Rollout) Current() *DeploymentHistoryEntry {
	if len(r.Status.History) == 0 {
		return nil
	}
	return &r.Status.History[0]
}

// Pinned returns the tag that spec.wantedVersion requests. It is empty if nothing is
// pinned.
func (r *Rollout) Pinned() string {
	if r.Spec.WantedVersion == nil {
		return ""
	}
	return *r.Spec.WantedVersion
}

// UnblocksFailed reports whether the next automatic promotion is allowed despite a
// failure.
func (r *Rollout) UnblocksFailed() bool {
	return r.Annotations[UnblockFailedAnnotation] == "true"
}

// AsksToAdopt reports whether a history that is older than the targets may go on from what
// they carry.
func (r *Rollout) AsksToAdopt() bool {
	return r.Annotations[AdoptAnnotation] == "true"
}

// Recovering reports whether the current promotion cannot fail. This was decided when it
// was recorded, and is true for as long as it is current. A rollback never fails.
func (r *Rollout) Recovering() bool {
	current := r.Current()
	return current.IsRollback() || current != nil && current.Recovery != ""
}

const (
	defaultVersionHistoryLimit = 10
	defaultRetentionDays       = 7
	defaultMinCount            = 30
)

// GetVersionHistoryLimit returns how many history entries are kept.
func (s *RolloutSpec) GetVersionHistoryLimit() int {
	return int(orDefault(s.VersionHistoryLimit, defaultVersionHistoryLimit))
}

// GetAvailableReleasesRetentionDays returns how many days releases stay among the known
// releases. It returns at most a century, because three centuries overflow a duration.
func (s *RolloutSpec) GetAvailableReleasesRetentionDays() int {
	const century = 36525
	return min(int(orDefault(s.AvailableReleasesRetentionDays, defaultRetentionDays)), century)
}

// GetAvailableReleasesMinCount returns how many releases always stay among the known
// releases.
func (s *RolloutSpec) GetAvailableReleasesMinCount() int {
	return int(orDefault(s.AvailableReleasesMinCount, defaultMinCount))
}

func orDefault(value *int32, fallback int32) int32 {
	if value == nil {
		return fallback
	}
	return *value
}
