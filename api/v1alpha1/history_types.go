// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// UnknownUser is the name of a user of whom not even the field manager is known.
const UnknownUser = "unknown"

// TriggeredBy identifies who caused a promotion.
type TriggeredBy struct {
	// kind is User or System.
	// +required
	Kind TriggerKind `json:"kind"`
	// name is the name of the user or system.
	// +required
	Name string `json:"name"`
	// verified is true if the API server has checked that the user has this name.
	// +optional
	Verified bool `json:"verified,omitempty"`
}

// Grounds is why a release was promoted.
// +kubebuilder:validation:Enum=Newest;Next;First;Pinned;Forced;Moved;Adopted;Rollback
type Grounds string

const (
	// GroundsNewest: it was the newest eligible release.
	GroundsNewest Grounds = "Newest"
	// GroundsNext: it was the next release, with spec.releaseStrategy Next.
	GroundsNext Grounds = "Next"
	// GroundsFirst: it was the first release of this environment.
	GroundsFirst Grounds = "First"
	// GroundsPinned: a user pinned it in spec.wantedVersion.
	GroundsPinned Grounds = "Pinned"
	// GroundsForced: a user requested it with the annotation force-deploy.
	GroundsForced Grounds = "Forced"
	// GroundsMoved: its tag was pushed again, and Flux has deployed the other content.
	GroundsMoved Grounds = "Moved"
	// GroundsAdopted: the targets had it already, and the history was empty or older.
	GroundsAdopted Grounds = "Adopted"
	// GroundsRollback: the promotion before it failed, and the controller went back to it.
	GroundsRollback Grounds = "Rollback"
)

// LiftedHold is a kind of hold that a user lifted for one promotion.
// +kubebuilder:validation:Enum=Gates;Upstreams;Failure;Promotion
type LiftedHold string

const (
	// LiftedGates: gates and schedules, by the annotation bypass-gates.
	LiftedGates LiftedHold = "Gates"
	// LiftedUpstreams: the environments before this one, by the annotation bypass-gates or force-deploy.
	LiftedUpstreams LiftedHold = "Upstreams"
	// LiftedFailure: a failure or an unhealthy HealthCheck, by the annotation
	// unblock-failed.
	LiftedFailure LiftedHold = "Failure"
	// LiftedPromotion: an Environment left the promotion to users, and a user asked for it
	// with the annotation promote.
	LiftedPromotion LiftedHold = "Promotion"
)

// Recovery is why a promotion cannot fail.
// +kubebuilder:validation:Enum=PreviousBakeFailed;DeployedWithUnhealthyHealthChecks
type Recovery string

const (
	// RecoveryFromFailure: it replaces a promotion that failed.
	RecoveryFromFailure Recovery = PreviousBakeFailedReason
	// RecoveryWhileUnhealthy: a user promoted it while a HealthCheck was Unhealthy.
	RecoveryWhileUnhealthy Recovery = DeployedWithUnhealthyHealthChecksReason
)

// Proof counts what a release was proven by.
type Proof struct {
	// targets is how many targets had applied the release.
	// +optional
	Targets int32 `json:"targets,omitempty"`
	// pulledOnly is how many of these are OCIRepositories that had pulled the release, and
	// that nothing is known to apply.
	// +optional
	PulledOnly int32 `json:"pulledOnly,omitempty"`
	// healthChecks is how many HealthChecks were healthy with it.
	// +optional
	HealthChecks int32 `json:"healthChecks,omitempty"`
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

	// grounds is why this release was promoted, as one word. Entries that another client has
	// written do not have it.
	// +optional
	Grounds Grounds `json:"grounds,omitempty"`

	// lifted are the holds that a user lifted for this promotion.
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	// +optional
	Lifted []LiftedHold `json:"lifted,omitempty"`

	// image is the image whose tags the ImagePolicy ranked at that time, without a tag.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Image string `json:"image,omitempty"`

	// message describes why this release was promoted, in the words of the user who
	// requested it, or else of the controller.
	// +optional
	Message *string `json:"message,omitempty"`

	// triggeredBy identifies who caused the promotion.
	// +optional
	TriggeredBy *TriggeredBy `json:"triggeredBy,omitempty"`

	// approval is who approved the promotion. It is absent if no gate asked.
	// +optional
	Approval *ApprovalRecord `json:"approval,omitempty"`

	// requestDigest identifies the texts of the annotations deploy-user and deploy-message
	// that this promotion has used up. They must not be taken for those of another one.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	RequestDigest string `json:"requestDigest,omitempty"`

	// bakeStatus is Deploying, InProgress, Succeeded, Failed or Cancelled.
	// +optional
	BakeStatus *BakeStatus `json:"bakeStatus,omitempty"`

	// bakeStatusMessage describes why the bake is in this state.
	// +optional
	BakeStatusMessage *string `json:"bakeStatusMessage,omitempty"`

	// recovery is set if this promotion cannot fail, and says why. Health that is bad makes
	// it wait.
	// +optional
	Recovery Recovery `json:"recovery,omitempty"`

	// appliedTime is when all targets were first seen to have applied the release, since the
	// promotion or its last retry.
	// +optional
	AppliedTime *metav1.Time `json:"appliedTime,omitempty"`

	// provenBy counts what the release was proven by when its bake succeeded. It is absent
	// before that.
	// +optional
	ProvenBy *Proof `json:"provenBy,omitempty"`

	// bakeStartTime is when the release was applied and healthy, and the bake time
	// started.
	// +optional
	BakeStartTime *metav1.Time `json:"bakeStartTime,omitempty"`

	// unprovenSince is since when, during the bake, not everything that proves the release
	// healthy does so. The bake time stands still until it does again. It is absent while
	// everything does.
	// +optional
	UnprovenSince *metav1.Time `json:"unprovenSince,omitempty"`

	// unprovenFor is how long the bake time stood still before that, in whole seconds.
	// +optional
	UnprovenFor *metav1.Duration `json:"unprovenFor,omitempty"`

	// bakeEndTime is when the bake ended, whatever its outcome.
	// +optional
	BakeEndTime *metav1.Time `json:"bakeEndTime,omitempty"`

	// failedHealthChecks lists the HealthChecks that failed the bake.
	// +listType=atomic
	// +optional
	FailedHealthChecks []FailedHealthCheck `json:"failedHealthChecks,omitempty"`

	// cause is what made the promotion fail: HealthCheckFailed, TargetUnhealthy or
	// DeployTimeout.
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
	// minute, or if the clock was ahead when the promotion was recorded: then it is when that
	// was noticed, and timestamp stays as it is, because it identifies the promotion.
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

// IDOrZero returns the id of the entry; zero if another client has written an entry without one.
func (e *DeploymentHistoryEntry) IDOrZero() int64 {
	if e == nil || e.ID == nil {
		return 0
	}
	return *e.ID
}

// HasLifted reports whether a user lifted that kind of hold for the promotion.
func (e *DeploymentHistoryEntry) HasLifted(hold LiftedHold) bool {
	return e != nil && slices.Contains(e.Lifted, hold)
}

// StoodStill returns for how long the bake time has stood still until a time.
func (e *DeploymentHistoryEntry) StoodStill(until time.Time) time.Duration {
	var stood time.Duration
	if e.UnprovenFor != nil {
		stood = e.UnprovenFor.Duration
	}
	if e.UnprovenSince != nil {
		stood += max(0, until.Sub(e.UnprovenSince.Time))
	}
	return stood
}

// PromotedTime returns when the release was promoted. If the clock was ahead then, it is when
// that was noticed.
func (e *DeploymentHistoryEntry) PromotedTime() time.Time {
	if e.RetryStartTime != nil && e.RetryStartTime.Before(&e.Timestamp) {
		return e.RetryStartTime.Time
	}
	return e.Timestamp.Time
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
