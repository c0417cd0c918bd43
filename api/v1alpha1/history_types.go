// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
