// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RolloutKind is the kind of a Rollout.
const RolloutKind = "Rollout"

// RolloutSpec says which releases an environment gets, and what must hold
// before and after it gets one.
type RolloutSpec struct {
	// releasesImagePolicy names the Flux ImagePolicy, in the Rollout's own
	// namespace, whose latestRef announces new releases.
	// +required
	ReleasesImagePolicy LocalObjectReference `json:"releasesImagePolicy"`

	// wantedVersion pins the Rollout to a tag, whether or not the release is
	// known, past gates and a running or failed bake. An older tag is a
	// rollback. Removing the field hands the choice back to the controller.
	// An empty string means that nothing is pinned.
	// +optional
	WantedVersion *string `json:"wantedVersion,omitempty"`

	// versionHistoryLimit is how many history entries are kept. Defaults to 10.
	// +kubebuilder:validation:Minimum=1
	// +optional
	VersionHistoryLimit *int32 `json:"versionHistoryLimit,omitempty"`

	// availableReleasesRetentionDays is for how many days after its creation
	// a release stays in status.availableReleases. Defaults to 7.
	// +kubebuilder:validation:Minimum=1
	// +optional
	AvailableReleasesRetentionDays *int32 `json:"availableReleasesRetentionDays,omitempty"`

	// availableReleasesMinCount is how many of the newest releases always stay
	// in status.availableReleases. Defaults to 30.
	// +kubebuilder:validation:Minimum=1
	// +optional
	AvailableReleasesMinCount *int32 `json:"availableReleasesMinCount,omitempty"`

	// bakeTime is how long a release must stay healthy, counted from the
	// moment it was applied and healthy, before it counts as a success.
	// Without it a release succeeds as soon as it is applied and healthy.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration of at most 2562047 hours"
	// +optional
	BakeTime *metav1.Duration `json:"bakeTime,omitempty"`

	// deployTimeout is how long after its promotion a release may take to be
	// applied and healthy; after that it has failed. Without it the
	// controller waits for as long as it takes.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration of at most 2562047 hours"
	// +optional
	DeployTimeout *metav1.Duration `json:"deployTimeout,omitempty"`

	// releaseUpdateInterval is an upper bound on how often a new release is
	// taken up by itself: an automatic promotion starts no earlier than the
	// promotion before it plus this interval. Absent means no bound.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="must be a duration of at most 2562047 hours"
	// +optional
	ReleaseUpdateInterval *metav1.Duration `json:"releaseUpdateInterval,omitempty"`

	// releaseStrategy says which candidate is promoted next. Newest, the
	// default, takes the newest eligible one and skips those before it. Next
	// takes one after another in the policy's order and never skips one: while
	// the next is held, all newer ones wait.
	// +optional
	ReleaseStrategy ReleaseStrategy `json:"releaseStrategy,omitempty"`

	// firstRelease says how the history begins, while it is empty. Newest, the
	// default, promotes the newest release that the gates allow, or the newest
	// of all if they allow none: an environment without any release has nothing
	// to protect. Applied is for an application that runs already: the version
	// that its targets carry and Flux has applied becomes the first entry,
	// whoever has set it, and gates and schedules hold from then on. A version
	// that a user chooses goes first in both cases.
	// +optional
	FirstRelease FirstRelease `json:"firstRelease,omitempty"`

	// healthCheckSelector selects the HealthChecks that a release must pass.
	// +optional
	HealthCheckSelector *HealthCheckSelector `json:"healthCheckSelector,omitempty"`

	// suspend stops the controller from promoting, writing targets and
	// judging bakes, until it is false again. Defaults to false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// ReleaseStrategy says which of several candidates is promoted.
// +kubebuilder:validation:Enum=Newest;Next
type ReleaseStrategy string

const (
	// ReleaseNewest takes the newest eligible candidate. The default.
	ReleaseNewest ReleaseStrategy = "Newest"
	// ReleaseNext takes the candidate that follows the current release.
	ReleaseNext ReleaseStrategy = "Next"
)

// FirstRelease says how the history of a Rollout begins.
// +kubebuilder:validation:Enum=Newest;Applied
type FirstRelease string

const (
	// FirstReleaseNewest promotes the newest release. The default.
	FirstReleaseNewest FirstRelease = "Newest"
	// FirstReleaseApplied takes over the version that the targets have applied.
	FirstReleaseApplied FirstRelease = "Applied"
)

// LocalObjectReference names an object in the namespace of the one that
// refers to it.
// +structType=atomic
type LocalObjectReference struct {
	// name of the object.
	// +kubebuilder:default=""
	// +optional
	Name string `json:"name,omitempty"`
}

// HealthCheckSelector selects HealthChecks by their labels and those of their
// namespace. The long form gives a selector; the short form writes its
// matchLabels and matchExpressions directly. Without any selector no
// HealthCheck is selected; an empty selector selects all in scope.
// +kubebuilder:validation:XValidation:rule="!has(self.selector) || !(has(self.matchLabels) || has(self.matchExpressions))",message="give either selector, or matchLabels and matchExpressions, not both"
type HealthCheckSelector struct {
	// selector selects HealthChecks by their labels; empty selects all.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// namespaceSelector widens the scope from the Rollout's own namespace to
	// every namespace whose labels match.
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
	// tag of the release in the registry; its identity.
	// +required
	Tag string `json:"tag"`

	// digest that the tag pointed to when the release was seen.
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
}

// ReleaseCandidate is a release that is newer than the current one, and why it
// is not promoted now.
type ReleaseCandidate struct {
	VersionInfo `json:",inline"`

	// holds are the reasons against promoting it now, the most telling first.
	// They are given for the one that goes next and the twenty newest, as far as
	// there is room.
	// +listType=atomic
	// +optional
	Holds []CandidateHold `json:"holds,omitempty"`
}

// CandidateHold is one reason why a candidate is not promoted now.
type CandidateHold struct {
	// reason as one word.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says what holds the candidate, and what would let it go.
	// +optional
	Message string `json:"message,omitempty"`
	// until is when time alone ends the hold; absent is never.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`
}

// BakeStatus is where a promoted release stands.
type BakeStatus string

const (
	// BakeDeploying means recorded, but not yet applied by every target and
	// proven healthy.
	BakeDeploying BakeStatus = "Deploying"
	// BakeInProgress means applied and healthy; the bake clock runs.
	BakeInProgress BakeStatus = "InProgress"
	// BakeSucceeded means the evidence held to the end of the bake. Final.
	BakeSucceeded BakeStatus = "Succeeded"
	// BakeFailed means a selected check failed or a deadline passed. Final.
	BakeFailed BakeStatus = "Failed"
	// BakeCancelled means a newer choice took its place. Final.
	BakeCancelled BakeStatus = "Cancelled"
)

// Running reports whether the bake still awaits its outcome. States unknown
// to this version count as final.
func (s BakeStatus) Running() bool {
	return s == BakeDeploying || s == BakeInProgress
}

// TriggerKind tells a person from the controller.
// +kubebuilder:validation:Enum=User;System
type TriggerKind string

const (
	// TriggeredByUser marks a promotion that a person asked for.
	TriggeredByUser TriggerKind = "User"
	// TriggeredBySystem marks a promotion that the controller chose.
	TriggeredBySystem TriggerKind = "System"
)

// TriggeredBy says who caused a promotion.
type TriggeredBy struct {
	// kind is User or System.
	// +required
	Kind TriggerKind `json:"kind"`
	// name of the user or system.
	// +required
	Name string `json:"name"`
}

// FailedHealthCheck is a HealthCheck that failed a bake.
type FailedHealthCheck struct {
	// name of the HealthCheck.
	// +required
	Name string `json:"name"`
	// namespace of the HealthCheck.
	// +required
	Namespace string `json:"namespace"`
	// message says what was wrong.
	// +optional
	Message *string `json:"message,omitempty"`
}

// DeploymentHistoryEntry records one promotion: what was promoted, why, and
// how it went.
type DeploymentHistoryEntry struct {
	// id numbers the promotions of a Rollout; each is higher than all before.
	// +optional
	ID *int64 `json:"id,omitempty"`

	// version is the promoted release as it was known then.
	// +required
	Version VersionInfo `json:"version"`

	// timestamp is when the promotion was recorded, before any target was
	// written.
	// +required
	Timestamp metav1.Time `json:"timestamp"`

	// message says why this release was promoted.
	// +optional
	Message *string `json:"message,omitempty"`

	// triggeredBy says who caused the promotion.
	// +optional
	TriggeredBy *TriggeredBy `json:"triggeredBy,omitempty"`

	// bakeStatus is Deploying, InProgress, Succeeded, Failed or Cancelled.
	// +optional
	BakeStatus *BakeStatus `json:"bakeStatus,omitempty"`

	// bakeStatusMessage says why the bake is in this state.
	// +optional
	BakeStatusMessage *string `json:"bakeStatusMessage,omitempty"`

	// bakeStartTime is when the release was applied and healthy, and the bake
	// clock started.
	// +optional
	BakeStartTime *metav1.Time `json:"bakeStartTime,omitempty"`

	// bakeEndTime is when the bake ended, whatever its outcome.
	// +optional
	BakeEndTime *metav1.Time `json:"bakeEndTime,omitempty"`

	// failedHealthChecks lists the HealthChecks that failed the bake.
	// +listType=atomic
	// +optional
	FailedHealthChecks []FailedHealthCheck `json:"failedHealthChecks,omitempty"`

	// lastRetryTimestamp is when the promotion was last retried. It is later than
	// any error that a selected HealthCheck had told of, by whatever clock.
	// +optional
	LastRetryTimestamp *metav1.Time `json:"lastRetryTimestamp,omitempty"`

	// retryStartTime is when that was by the controller's own clock, from which
	// deadlines count. It is set only if lastRetryTimestamp had to be later by more
	// than a minute.
	// +optional
	RetryStartTime *metav1.Time `json:"retryStartTime,omitempty"`
}

// State returns the bake state, empty if none is recorded.
func (e *DeploymentHistoryEntry) State() BakeStatus {
	if e == nil || e.BakeStatus == nil {
		return ""
	}
	return *e.BakeStatus
}

// Cutoff is the moment from which deadlines of this entry count, by the controller's
// clock: the promotion, or its last retry.
func (e *DeploymentHistoryEntry) Cutoff() metav1.Time {
	if e.RetryStartTime != nil {
		return *e.RetryStartTime
	}
	if e.LastRetryTimestamp != nil && e.Timestamp.Before(e.LastRetryTimestamp) {
		return *e.LastRetryTimestamp
	}
	return e.Timestamp
}

// RolloutGateStatusSummary shows one RolloutGate as it was judged.
type RolloutGateStatusSummary struct {
	// name of the RolloutGate.
	// +required
	Name string `json:"name"`
	// passing is false if the gate holds everything back.
	// +optional
	Passing *bool `json:"passing,omitempty"`
	// allowedVersions are the tags that the gate lets through; absent if it
	// does not filter by version.
	// +listType=atomic
	// +optional
	AllowedVersions []string `json:"allowedVersions,omitzero"`
	// message says what the gate does to the candidates.
	// +optional
	Message string `json:"message,omitempty"`
	// bypassGates is true while the gate is bypassed.
	// +optional
	BypassGates bool `json:"bypassGates,omitempty"`
}

// TargetState is how far a target is with the version it should carry.
// +kubebuilder:validation:Enum=Pending;Applied;Failed;Conflict
type TargetState string

const (
	// TargetPending means that Flux has not yet reported the version applied.
	TargetPending TargetState = "Pending"
	// TargetApplied means that Flux reported the version applied.
	TargetApplied TargetState = "Applied"
	// TargetFailed means that writing the target, or Flux applying it, failed.
	TargetFailed TargetState = "Failed"
	// TargetConflict means that something in the target keeps the version
	// from taking effect until a person resolves it.
	TargetConflict TargetState = "Conflict"
)

// TargetStatus is one Flux object that the Rollout drives, or that must have
// applied what the Rollout drives.
type TargetStatus struct {
	// kind is OCIRepository, Kustomization or HelmRelease.
	// +required
	Kind string `json:"kind"`
	// name of the object.
	// +required
	Name string `json:"name"`
	// namespace of the object.
	// +required
	Namespace string `json:"namespace"`
	// version is the tag that the state refers to.
	// +optional
	Version string `json:"version,omitempty"`
	// digest of what Flux had pulled by that tag when the target was last seen
	// applied; only of an OCIRepository.
	// +optional
	Digest string `json:"digest,omitempty"`
	// state is Pending, Applied, Failed or Conflict.
	// +optional
	State TargetState `json:"state,omitempty"`
	// message says what is wrong and what to do, or what is awaited.
	// +optional
	Message string `json:"message,omitempty"`
}

// UnlistedCounts says how much there is beyond what the lists of a status have
// room for. Decisions and conditions rest on all of it.
type UnlistedCounts struct {
	// releaseCandidates beyond those listed, older than the newest and not next.
	// +optional
	ReleaseCandidates int32 `json:"releaseCandidates,omitempty"`
	// gatedReleaseCandidates beyond those listed.
	// +optional
	GatedReleaseCandidates int32 `json:"gatedReleaseCandidates,omitempty"`
	// gates beyond those listed; those that hold releases back are listed first.
	// +optional
	Gates int32 `json:"gates,omitempty"`
	// targets beyond those listed; those with a problem are listed first.
	// +optional
	Targets int32 `json:"targets,omitempty"`
}

// RolloutStatus is what the controller has observed, decided and done.
type RolloutStatus struct {
	// conditions summarise the Rollout for people, kstatus and alerts.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that the status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastHandledReconcileAt is the reconcile.fluxcd.io/requestedAt token that
	// was handled last.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// history records the promotions, newest first.
	// +listType=atomic
	// +optional
	History []DeploymentHistoryEntry `json:"history,omitempty"`

	// availableReleases is the ledger of known releases, oldest first.
	// +listType=atomic
	// +optional
	AvailableReleases []VersionInfo `json:"availableReleases,omitempty"`

	// releaseCandidates are the releases newer than the current one, newest
	// first, each with what holds it back.
	// +listType=atomic
	// +optional
	ReleaseCandidates []ReleaseCandidate `json:"releaseCandidates,omitempty"`

	// gatedReleaseCandidates are the candidates that every gate lets through,
	// newest first.
	// +listType=atomic
	// +optional
	GatedReleaseCandidates []VersionInfo `json:"gatedReleaseCandidates,omitempty"`

	// gates shows each RolloutGate of this Rollout as it was judged, by name.
	// +listType=atomic
	// +optional
	Gates []RolloutGateStatusSummary `json:"gates,omitempty"`

	// targets shows each Flux object that this Rollout drives, by kind,
	// namespace and name.
	// +listType=atomic
	// +optional
	Targets []TargetStatus `json:"targets,omitempty"`

	// unlisted counts what the lists of this status leave out, since a status
	// must stay small; absent if they are complete.
	// +optional
	Unlisted *UnlistedCounts `json:"unlisted,omitempty"`

	// artifactType of the newest image.
	// +optional
	ArtifactType *string `json:"artifactType,omitempty"`
	// source of the newest image.
	// +optional
	Source *string `json:"source,omitempty"`
	// title of the newest image.
	// +optional
	Title *string `json:"title,omitempty"`
	// description of the newest image.
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

	// spec says which releases are promoted, and what must hold.
	// +optional
	Spec RolloutSpec `json:"spec,omitempty"`
	// status is what the controller has observed, decided and done.
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

// GetConditions returns the conditions, for Flux's condition functions.
func (r *Rollout) GetConditions() []metav1.Condition { return r.Status.Conditions }

// SetConditions replaces the conditions, for Flux's condition functions.
func (r *Rollout) SetConditions(conditions []metav1.Condition) { r.Status.Conditions = conditions }

// Current returns the newest history entry, or nil before the first promotion.
func (r *Rollout) Current() *DeploymentHistoryEntry {
	if len(r.Status.History) == 0 {
		return nil
	}
	return &r.Status.History[0]
}

// UnlistedTargets returns how many targets there are beyond those listed.
func (s *RolloutStatus) UnlistedTargets() int32 {
	if s.Unlisted == nil {
		return 0
	}
	return s.Unlisted.Targets
}

// Pinned returns the tag that spec.wantedVersion asks for; empty is no pin.
func (r *Rollout) Pinned() string {
	if r.Spec.WantedVersion == nil {
		return ""
	}
	return *r.Spec.WantedVersion
}

// Forced returns the tag that the force-deploy annotation asks for; empty is
// none, or none other than what is current.
func (r *Rollout) Forced() string {
	tag := r.Annotations[ForceDeployAnnotation]
	if current := r.Current(); current != nil && current.Version.Tag == tag {
		return ""
	}
	return tag
}

// ChosenByHand returns the tag that a person asks for, pinned or forced; empty
// leaves the choice to the controller.
func (r *Rollout) ChosenByHand() string {
	if pinned := r.Pinned(); pinned != "" {
		return pinned
	}
	return r.Forced()
}

// UnblocksFailed reports whether the next automatic promotion may go past a
// failure.
func (r *Rollout) UnblocksFailed() bool {
	return r.Annotations[UnblockFailedAnnotation] == "true"
}

// Recovering reports whether the current promotion cannot fail. That was
// decided when it was recorded, and holds for as long as it is current.
func (r *Rollout) Recovering() bool {
	return slices.ContainsFunc(r.Status.Conditions, func(c metav1.Condition) bool {
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

// GetAvailableReleasesRetentionDays returns for how many days releases stay
// in the ledger; a century at most, since a duration cannot hold three.
func (s *RolloutSpec) GetAvailableReleasesRetentionDays() int {
	const century = 36525
	return min(int(orDefault(s.AvailableReleasesRetentionDays, defaultRetentionDays)), century)
}

// GetAvailableReleasesMinCount returns how many releases always stay in the
// ledger.
func (s *RolloutSpec) GetAvailableReleasesMinCount() int {
	return int(orDefault(s.AvailableReleasesMinCount, defaultMinCount))
}

func orDefault(value *int32, fallback int32) int32 {
	if value == nil {
		return fallback
	}
	return *value
}
