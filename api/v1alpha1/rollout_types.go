// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"

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
	// promotes the newest release that the gates allow. If they allow none, it promotes
	// the newest of all: an environment without any release has nothing to protect.
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

// VersionInfo is one release, identified by its tag.
type VersionInfo struct {
	// tag is the tag of the release in the registry. It identifies the release.
	// +required
	Tag string `json:"tag"`

	// digest is the digest that the tag pointed to when the release was found.
	// +optional
	Digest *string `json:"digest,omitempty"`

	// version is the image's org.opencontainers.image.version.
	// +optional
	Version *string `json:"version,omitempty"`

	// revision is the image's org.opencontainers.image.revision.
	// +optional
	Revision *string `json:"revision,omitempty"`

	// created is the image's org.opencontainers.image.created.
	// +optional
	Created *metav1.Time `json:"created,omitempty"`

	// forwardOnly is true if the image is marked so that no rollback goes back past it. It
	// is absent if that is not known, and unless spec.rollback is set.
	// +optional
	ForwardOnly *bool `json:"forwardOnly,omitempty"`
}

// ReleaseCandidate is a release that is newer than the current one, with the reasons why
// it is not promoted now.
type ReleaseCandidate struct {
	VersionInfo `json:",inline"`

	// holds are the reasons against promoting it now, the most important first. They are
	// given for the candidate that is next and for the twenty newest, within the size
	// limit.
	// +listType=atomic
	// +optional
	Holds []CandidateHold `json:"holds,omitempty"`
}

// CandidateHold is one reason why a candidate is not promoted now.
type CandidateHold struct {
	// reason is the reason as one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message describes what holds back the candidate and how to resolve it.
	// +optional
	Message string `json:"message,omitempty"`
	// until is when the hold ends without any action. If it is absent, time alone does
	// not end the hold.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// BakeStatus is the state of a promoted release.
type BakeStatus string

const (
	// BakeDeploying means that the promotion is recorded, but the release is not yet
	// applied by every target and proven healthy.
	BakeDeploying BakeStatus = "Deploying"
	// BakeInProgress means that the release is applied and healthy, and the bake time
	// runs.
	BakeInProgress BakeStatus = "InProgress"
	// BakeSucceeded means that the release stayed healthy to the end of the bake. It is
	// final.
	BakeSucceeded BakeStatus = "Succeeded"
	// BakeFailed means that a selected check failed or a deadline passed. It is final.
	BakeFailed BakeStatus = "Failed"
	// BakeCancelled means that a newer choice replaced the release. It is final.
	BakeCancelled BakeStatus = "Cancelled"
)

// Running reports whether the bake has no outcome yet. States unknown to this version
// count as final.
func (s BakeStatus) Running() bool {
	return s == BakeDeploying || s == BakeInProgress
}

// TriggerKind distinguishes users from the controller.
// +kubebuilder:validation:Enum=User;System
type TriggerKind string

const (
	// TriggeredByUser marks a promotion that a user requested.
	TriggeredByUser TriggerKind = "User"
	// TriggeredBySystem marks a promotion that the controller chose.
	TriggeredBySystem TriggerKind = "System"
)

// TriggeredBy identifies who caused a promotion.
type TriggeredBy struct {
	// kind is User or System.
	// +required
	Kind TriggerKind `json:"kind"`
	// name is the name of the user or system.
	// +required
	Name string `json:"name"`
}

// FailedHealthCheck is a HealthCheck that failed a bake.
type FailedHealthCheck struct {
	// name is the name of the HealthCheck.
	// +required
	Name string `json:"name"`
	// namespace is the namespace of the HealthCheck.
	// +required
	Namespace string `json:"namespace"`
	// message describes what was wrong.
	// +optional
	Message *string `json:"message,omitempty"`
}

// DeploymentHistoryEntry records one promotion: which release was promoted, why, and with
// which outcome.
type DeploymentHistoryEntry struct {
	// id numbers the promotions of a Rollout. Each number is higher than all earlier
	// ones.
	// +optional
	ID *int64 `json:"id,omitempty"`

	// version is the promoted release as it was known at that time.
	// +required
	Version VersionInfo `json:"version"`

	// timestamp is when the promotion was recorded, before any target was written.
	// +required
	Timestamp metav1.Time `json:"timestamp"`

	// message describes why this release was promoted.
	// +optional
	Message *string `json:"message,omitempty"`

	// triggeredBy identifies who caused the promotion.
	// +optional
	TriggeredBy *TriggeredBy `json:"triggeredBy,omitempty"`

	// bakeStatus is Deploying, InProgress, Succeeded, Failed or Cancelled.
	// +optional
	BakeStatus *BakeStatus `json:"bakeStatus,omitempty"`

	// bakeStatusMessage describes why the bake is in this state.
	// +optional
	BakeStatusMessage *string `json:"bakeStatusMessage,omitempty"`

	// bakeStartTime is when the release was applied and healthy, and the bake time
	// started.
	// +optional
	BakeStartTime *metav1.Time `json:"bakeStartTime,omitempty"`

	// bakeEndTime is when the bake ended, whatever its outcome.
	// +optional
	BakeEndTime *metav1.Time `json:"bakeEndTime,omitempty"`

	// failedHealthChecks lists the HealthChecks that failed the bake.
	// +listType=atomic
	// +optional
	FailedHealthChecks []FailedHealthCheck `json:"failedHealthChecks,omitempty"`

	// cause is what made the promotion fail: HealthCheckFailed, TargetUnhealthy or
	// DeployTimeout. It is recorded while spec.rollback is set, or spec.quarantine reports
	// failures.
	// +optional
	Cause FailureCause `json:"cause,omitempty"`

	// rollbackDue is when the failure is answered by a rollback. It is absent if it is
	// not: spec.rollback was not set, or did not name the cause.
	// +optional
	RollbackDue *metav1.Time `json:"rollbackDue,omitempty"`

	// quarantine names the ReleaseQuarantine that this failure was reported to.
	// +optional
	Quarantine string `json:"quarantine,omitempty"`

	// rollback is set if the promotion is an automatic rollback.
	// +optional
	Rollback *RollbackRecord `json:"rollback,omitempty"`

	// lastRetryTimestamp is when the promotion was last retried. It is later than any
	// error time that a selected HealthCheck had reported, even if the clocks differ.
	// +optional
	LastRetryTimestamp *metav1.Time `json:"lastRetryTimestamp,omitempty"`

	// retryStartTime is the time of that retry by the controller's own clock. Deadlines
	// start from it. It is set only if lastRetryTimestamp had to be later by more than a
	// minute.
	// +optional
	RetryStartTime *metav1.Time `json:"retryStartTime,omitempty"`
}

// State returns the bake state. It is empty if none is recorded.
func (e *DeploymentHistoryEntry) State() BakeStatus {
	if e == nil || e.BakeStatus == nil {
		return ""
	}
	return *e.BakeStatus
}

// Cutoff returns the time from which deadlines of this entry count, by the controller's
// clock: the promotion or its last retry.
func (e *DeploymentHistoryEntry) Cutoff() metav1.Time {
	if e.RetryStartTime != nil {
		return *e.RetryStartTime
	}
	if e.LastRetryTimestamp != nil && e.Timestamp.Before(e.LastRetryTimestamp) {
		return *e.LastRetryTimestamp
	}
	return e.Timestamp
}

// RolloutGateStatusSummary shows how one RolloutGate was evaluated.
type RolloutGateStatusSummary struct {
	// name is the name of the RolloutGate.
	// +required
	Name string `json:"name"`
	// passing is false if the gate holds back every release.
	// +optional
	Passing *bool `json:"passing,omitempty"`
	// allowedVersions are the tags that the gate allows. It is absent if the gate does
	// not filter by version.
	// +listType=atomic
	// +optional
	AllowedVersions []string `json:"allowedVersions,omitzero"`
	// message describes how the gate affects the candidates.
	// +optional
	Message string `json:"message,omitempty"`
	// bypassGates is true while the gate is bypassed.
	// +optional
	BypassGates bool `json:"bypassGates,omitempty"`
}

// TargetState is the progress of a target towards the version that it should have.
// +kubebuilder:validation:Enum=Pending;Applied;Failed;Conflict
type TargetState string

const (
	// TargetPending means that Flux has not yet reported that the version is applied.
	TargetPending TargetState = "Pending"
	// TargetApplied means that Flux reported that the version is applied.
	TargetApplied TargetState = "Applied"
	// TargetFailed means that the target could not be written, or Flux failed to apply
	// it.
	TargetFailed TargetState = "Failed"
	// TargetConflict means that something in the target keeps the version from taking
	// effect until a user resolves it.
	TargetConflict TargetState = "Conflict"
)

// TargetStatus shows one Flux object that the Rollout writes, or that must have applied
// what the Rollout writes.
type TargetStatus struct {
	// kind is OCIRepository, Kustomization or HelmRelease.
	// +required
	Kind string `json:"kind"`
	// name is the name of the object.
	// +required
	Name string `json:"name"`
	// namespace is the namespace of the object.
	// +required
	Namespace string `json:"namespace"`
	// version is the tag that the state refers to.
	// +optional
	Version string `json:"version,omitempty"`
	// digest is the digest that Flux had pulled by that tag when the target was last
	// observed to be applied. Only an OCIRepository has it.
	// +optional
	Digest string `json:"digest,omitempty"`
	// state is Pending, Applied, Failed or Conflict.
	// +optional
	State TargetState `json:"state,omitempty"`
	// message describes what is wrong and how to resolve it, or what the controller waits
	// for.
	// +optional
	Message string `json:"message,omitempty"`
}

// UnlistedCounts counts the items that the lists of a status leave out because of their
// size limit. Decisions and conditions consider all items.
type UnlistedCounts struct {
	// releaseCandidates counts the candidates that are not listed. All of them are older
	// than the newest, and none is the next.
	// +optional
	ReleaseCandidates int32 `json:"releaseCandidates,omitempty"`
	// gatedReleaseCandidates counts the gated candidates that are not listed.
	// +optional
	GatedReleaseCandidates int32 `json:"gatedReleaseCandidates,omitempty"`
	// gates counts the gates that are not listed. Gates that hold back releases are
	// listed first.
	// +optional
	Gates int32 `json:"gates,omitempty"`
	// targets counts the targets that are not listed. Targets with a problem are listed
	// first.
	// +optional
	Targets int32 `json:"targets,omitempty"`
}

// RolloutStatus is the state that the controller has observed, and what it has decided
// and done.
type RolloutStatus struct {
	// conditions summarise the Rollout for users, kstatus and alerts.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastHandledReconcileAt is the reconcile.fluxcd.io/requestedAt token that was
	// handled last.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// history records the promotions, newest first.
	// +listType=atomic
	// +optional
	History []DeploymentHistoryEntry `json:"history,omitempty"`

	// availableReleases lists the known releases, oldest first.
	// +listType=atomic
	// +optional
	AvailableReleases []VersionInfo `json:"availableReleases,omitempty"`

	// releaseCandidates are the releases newer than the current one, newest first, each
	// with the reasons that hold it back.
	// +listType=atomic
	// +optional
	ReleaseCandidates []ReleaseCandidate `json:"releaseCandidates,omitempty"`

	// gatedReleaseCandidates are the candidates that every gate allows, newest first.
	// +listType=atomic
	// +optional
	GatedReleaseCandidates []VersionInfo `json:"gatedReleaseCandidates,omitempty"`

	// gates shows how each RolloutGate of this Rollout was evaluated, sorted by name.
	// +listType=atomic
	// +optional
	Gates []RolloutGateStatusSummary `json:"gates,omitempty"`

	// targets shows each Flux object that this Rollout writes, or that must have applied
	// what it writes, sorted by kind, namespace and name.
	// +listType=atomic
	// +optional
	Targets []TargetStatus `json:"targets,omitempty"`

	// unlisted counts the items that the lists of this status leave out, because a status
	// must stay small. It is absent if the lists are complete.
	// +optional
	Unlisted *UnlistedCounts `json:"unlisted,omitempty"`

	// artifactType is the artifact type of the newest image.
	// +optional
	ArtifactType *string `json:"artifactType,omitempty"`
	// source is the source of the newest image.
	// +optional
	Source *string `json:"source,omitempty"`
	// title is the title of the newest image.
	// +optional
	Title *string `json:"title,omitempty"`
	// description is the description of the newest image.
	// +optional
	Description *string `json:"description,omitempty"`
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
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Suspended",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Pinned",type=string,JSONPath=`.spec.wantedVersion`,description="The version that spec.wantedVersion pins"
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

// UnlistedTargets returns how many targets are not listed.
func (s *RolloutStatus) UnlistedTargets() int32 {
	if s.Unlisted == nil {
		return 0
	}
	return s.Unlisted.Targets
}

// Pinned returns the tag that spec.wantedVersion requests. It is empty if nothing is
// pinned.
func (r *Rollout) Pinned() string {
	if r.Spec.WantedVersion == nil {
		return ""
	}
	return *r.Spec.WantedVersion
}

// Forced returns the tag that the force-deploy annotation requests. It is empty without
// the annotation, and if the tag is the current one.
func (r *Rollout) Forced() string {
	tag := r.Annotations[ForceDeployAnnotation]
	if current := r.Current(); current != nil && current.Version.Tag == tag {
		return ""
	}
	return tag
}

// ChosenManually returns the tag that a user requests, pinned or forced. If it is empty,
// the controller chooses.
func (r *Rollout) ChosenManually() string {
	if pinned := r.Pinned(); pinned != "" {
		return pinned
	}
	return r.Forced()
}

// UnblocksFailed reports whether the next automatic promotion is allowed despite a
// failure.
func (r *Rollout) UnblocksFailed() bool {
	return r.Annotations[UnblockFailedAnnotation] == "true"
}

// Recovering reports whether the current promotion cannot fail. This was decided when it
// was recorded, and is true for as long as it is current. A rollback never fails.
func (r *Rollout) Recovering() bool {
	return r.Current().IsRollback() || slices.ContainsFunc(r.Status.Conditions, func(c metav1.Condition) bool {
		return c.Type == BakeFailureDisabledCondition && c.Status == metav1.ConditionTrue
	})
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
