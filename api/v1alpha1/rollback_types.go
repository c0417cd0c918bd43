// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FailureCause is what made a promotion fail.
type FailureCause string

const (
	// CauseHealthCheckFailed means that a HealthCheck reported an error.
	CauseHealthCheckFailed FailureCause = "HealthCheckFailed"
	// CauseTargetUnhealthy means that Flux applied the release, and its objects did not
	// become healthy.
	CauseTargetUnhealthy FailureCause = "TargetUnhealthy"
	// CauseDeployTimeout means that spec.deployTimeout passed, and nothing is known to be
	// wrong with the release.
	CauseDeployTimeout FailureCause = "DeployTimeout"
)

// RollbackBarriers defines what releases that cannot be left again do.
// +kubebuilder:validation:Enum=Respect;Ignore
type RollbackBarriers string

const (
	// RollbackBarriersRespect does not go back past such a release.
	RollbackBarriersRespect RollbackBarriers = "Respect"
	// RollbackBarriersIgnore goes back past it. It is the default.
	RollbackBarriersIgnore RollbackBarriers = "Ignore"
)

// RollbackSchedules defines what closed schedules do.
// +kubebuilder:validation:Enum=Ignore;Obey
type RollbackSchedules string

const (
	// RollbackSchedulesIgnore goes back at any time. It is the default.
	RollbackSchedulesIgnore RollbackSchedules = "Ignore"
	// RollbackSchedulesObey waits until all schedules are open.
	RollbackSchedulesObey RollbackSchedules = "Obey"
)

// RolloutRollback defines when a Rollout goes back by itself, after a promotion has
// failed, to the last release that succeeded.
type RolloutRollback struct {
	// causes are the causes of a failure that it goes back for. Defaults to
	// HealthCheckFailed and TargetUnhealthy. After a DeployTimeout, nothing is known to be
	// wrong with the release.
	// +listType=set
	// +kubebuilder:validation:items:Enum=HealthCheckFailed;TargetUnhealthy;DeployTimeout
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	// +optional
	Causes []FailureCause `json:"causes,omitempty"`

	// delay is the time between the failure and the rollback, in which a user can retry
	// or pin. At most 24 hours. Defaults to 0s.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('24h')",message="must be at most 24h"
	// +optional
	Delay *metav1.Duration `json:"delay,omitempty"`

	// bakeTime is the bake time of the rollback. Defaults to spec.bakeTime.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('24h')",message="must be at most 24h"
	// +optional
	BakeTime *metav1.Duration `json:"bakeTime,omitempty"`

	// overdueAfter is how long the rollback may take to become applied and healthy before
	// the Rollout is Stalled and reports it. A rollback never fails. From 1 minute to 24
	// hours. Defaults to spec.deployTimeout, or else to 15m, after the time for which Flux
	// may still wait for the health of the release that failed.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('24h')",message="must be from 1m to 24h"
	// +optional
	OverdueAfter *metav1.Duration `json:"overdueAfter,omitempty"`

	// notBelow is a tag. Nothing older than it, in the order of the ImagePolicy, is
	// deployed by a rollback.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`
	// +optional
	NotBelow string `json:"notBelow,omitempty"`

	// barriers defines whether a rollback goes back past a release whose image is marked
	// as forward-only, for example because it migrates a database. Ignore, the default,
	// does. With Respect it does not, and as long as it is not known whether a release is
	// marked, because the registry does not say it, nothing is rolled back.
	// +optional
	Barriers RollbackBarriers `json:"barriers,omitempty"`

	// schedules defines whether a rollback waits for closed schedules. Ignore, the
	// default, does not wait.
	// +optional
	Schedules RollbackSchedules `json:"schedules,omitempty"`

	// maxConsecutive is how many promotions may fail one after another before automatic
	// promotions wait for a user. Defaults to 3.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	// +optional
	MaxConsecutive *int32 `json:"maxConsecutive,omitempty"`
}

// RollbackRecord says of a history entry that it is a rollback.
type RollbackRecord struct {
	// from is the tag of the release that failed.
	// +optional
	From string `json:"from,omitempty"`
	// fromID is the id of the entry that failed.
	// +optional
	FromID int64 `json:"fromID,omitempty"`
	// toID is the id of the entry that had succeeded with the release.
	// +optional
	ToID int64 `json:"toID,omitempty"`
}

const (
	defaultOverdueAfter   = 15 * time.Minute
	defaultMaxConsecutive = 3
)

// IsRollback reports whether the entry is an automatic rollback.
func (e *DeploymentHistoryEntry) IsRollback() bool {
	return e != nil && (e.Rollback != nil || e.Grounds == GroundsRollback)
}

// RollsBack reports whether the Rollout goes back by itself.
func (s *RolloutSpec) RollsBack() bool {
	return s.Rollback != nil
}

// RespectsBarriers reports whether a forward-only release keeps the Rollout from going
// back. Only then the status says of its releases whether they are.
func (s *RolloutSpec) RespectsBarriers() bool {
	return s.RollsBack() && s.Rollback.Barriers == RollbackBarriersRespect
}

// Answers reports whether a failure with that cause is answered by a rollback.
func (r *RolloutRollback) Answers(cause FailureCause) bool {
	if len(r.Causes) == 0 {
		return cause == CauseHealthCheckFailed || cause == CauseTargetUnhealthy
	}
	return slices.Contains(r.Causes, cause)
}

// BakeTimeOf returns the bake time of a history entry; nil if it has none.
func (s *RolloutSpec) BakeTimeOf(entry *DeploymentHistoryEntry) *metav1.Duration {
	if entry.IsRollback() && s.Rollback != nil && s.Rollback.BakeTime != nil {
		return s.Rollback.BakeTime
	}
	return s.BakeTime
}

// RollbackOverdueAfter returns how long a rollback may take to become applied and healthy,
// given for how long Flux may still wait for the release that failed.
func (s *RolloutSpec) RollbackOverdueAfter(fluxWaits time.Duration) time.Duration {
	switch {
	case s.Rollback != nil && s.Rollback.OverdueAfter != nil:
		return s.Rollback.OverdueAfter.Duration
	case s.DeployTimeout != nil:
		return fluxWaits + s.DeployTimeout.Duration
	}
	return fluxWaits + defaultOverdueAfter
}

// GetMaxConsecutive returns how many promotions may fail one after another.
func (r *RolloutRollback) GetMaxConsecutive() int {
	return int(orDefault(r.MaxConsecutive, defaultMaxConsecutive))
}
