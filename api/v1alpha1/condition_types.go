// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types of a Rollout. Schedules have the first three.
const (
	// ReadyCondition is True while the newest promotion is under way or has
	// succeeded; beside Reconciling=True its outcome is still open.
	ReadyCondition = "Ready"
	// ReconcilingCondition is True while the controller waits for something
	// that it expects to happen. Removed otherwise.
	ReconcilingCondition = "Reconciling"
	// StalledCondition is True while a person must act. Removed otherwise.
	StalledCondition = "Stalled"
	// ReleasesUpdatedCondition is False while the ImagePolicy cannot be read
	// or used.
	ReleasesUpdatedCondition = "ReleasesUpdated"
	// GatesPassingCondition is False while gates or schedules hold back a
	// candidate.
	GatesPassingCondition = "GatesPassing"
	// DeploymentBlockedCondition is True while the health of what runs holds
	// back automatic promotions.
	DeploymentBlockedCondition = "DeploymentBlocked"
	// BakeFailureDisabledCondition is True while the current promotion cannot
	// fail: it replaces a failed one, or a person made it beside an Unhealthy
	// check. It is decided when the promotion is recorded.
	BakeFailureDisabledCondition = "BakeFailureDisabled"
	// RequestAcceptedCondition is False after a request by annotation that
	// could not be honoured, until the next promotion or retry. Absent
	// otherwise.
	RequestAcceptedCondition = "RequestAccepted"
	// TargetsAppliedCondition is True while every target reports the current
	// release applied.
	TargetsAppliedCondition = "TargetsApplied"
)

// Reasons of Ready, Reconciling and Stalled.
const (
	// RolloutSucceededReason: the release was recorded and is being, or was,
	// deployed.
	RolloutSucceededReason = "RolloutSucceeded"
	// RolloutFailedReason: the Rollout's releases, gates, targets or health
	// could not be read or written.
	RolloutFailedReason = "RolloutFailed"
	// NoReleasesReason: the ImagePolicy has not named a release yet.
	NoReleasesReason = "NoReleases"
	// BakeTimePassedReason: the bake is over and the evidence held.
	BakeTimePassedReason = "BakeTimePassed"
	// BakeTimeFailedReason: a health check failed or the deadline passed.
	BakeTimeFailedReason = "BakeTimeFailed"
	// BakeTimeRetryingReason: a failed bake was retried and has not begun again.
	BakeTimeRetryingReason = "BakeTimeRetrying"
	// DeploymentMarkedSuccessfulReason: a person declared the bake a success.
	DeploymentMarkedSuccessfulReason = "DeploymentMarkedSuccessful"
	// InvalidWantedVersionReason: spec.wantedVersion cannot be an OCI tag.
	InvalidWantedVersionReason = "InvalidWantedVersion"
	// UnknownReleaseReason: force-deploy names a release that is not known.
	UnknownReleaseReason = "UnknownRelease"
	// InvalidSelectorReason: spec.healthCheckSelector cannot be parsed.
	InvalidSelectorReason = "InvalidSelector"
	// AccessDeniedReason: the Rollout or its ImagePolicy refers to another
	// namespace, and the controller runs with --no-cross-namespace-refs, or the
	// ImageRepository there does not let the namespace in.
	AccessDeniedReason = "AccessDenied"
	// FirstReleaseNotAppliedReason: spec.firstRelease is Applied, and the targets
	// have not all applied a version yet that could become the first entry.
	FirstReleaseNotAppliedReason = "FirstReleaseNotApplied"
	// FirstReleaseUnknownReason: spec.firstRelease is Applied, and a target carries
	// no version, or one that cannot be a tag.
	FirstReleaseUnknownReason = "FirstReleaseUnknown"

	// TargetsDisagreeReason: the targets carry different versions, and the history
	// is lost, or is to begin with what they carry.
	TargetsDisagreeReason = "TargetsDisagree"
	// HealthCheckListFailedReason: the HealthChecks could not be read.
	HealthCheckListFailedReason = "HealthCheckListFailed"
	// GateListFailedReason: gates or schedules could not be read.
	GateListFailedReason = "GateListFailed"
	// ProgressingReason: the promotion is under way.
	ProgressingReason = "Progressing"
)

// Reasons of ReleasesUpdated.
const (
	// ReleasesUpdatedReason: the ImagePolicy's releases are in the ledger.
	ReleasesUpdatedReason = "ReleasesUpdated"
	// ImagePolicyNotFoundReason: the ImagePolicy does not exist.
	ImagePolicyNotFoundReason = "ImagePolicyNotFound"
	// ImagePolicyNotReadyReason: the ImagePolicy or its ImageRepository
	// reports an error, such as a registry that cannot be reached.
	ImagePolicyNotReadyReason = "ImagePolicyNotReady"
	// ImagePolicyUnreadableReason: the ImagePolicy could not be read.
	ImagePolicyUnreadableReason = "ImagePolicyUnreadable"
	// InvalidReleaseTagReason: the named tag is no semver although the policy
	// orders by semver.
	InvalidReleaseTagReason = "InvalidReleaseTag"
	// InvalidImagePolicyReason: the policy's range or pattern cannot be used.
	InvalidImagePolicyReason = "InvalidImagePolicy"
)

// Reasons of GatesPassing, and of candidates that gates or schedules hold
// back.
const (
	// AllGatesPassingReason: a candidate passes every gate.
	AllGatesPassingReason = "AllGatesPassing"
	// GatesBypassedReason: bypass-gates names a candidate; only that one is
	// considered, and gates do not hold it.
	GatesBypassedReason = "GatesBypassed"
	// NoReleaseCandidatesReason: there is no candidate to gate.
	NoReleaseCandidatesReason = "NoReleaseCandidates"
	// SomeGatesBlockingReason: a gate is not passing.
	SomeGatesBlockingReason = "SomeGatesBlocking"
	// NoAllowedVersionsReason: the gates' allowed versions leave no candidate.
	NoAllowedVersionsReason = "NoAllowedVersions"
	// ScheduleClosedReason: a schedule is closed at present.
	ScheduleClosedReason = "ScheduleClosed"
	// InvalidScheduleReason: a schedule cannot be evaluated.
	InvalidScheduleReason = "InvalidSchedule"
)

// Reasons of a schedule's Ready, Reconciling and Stalled, beside
// ScheduleClosed and InvalidSchedule.
const (
	// ScheduleOpenReason: the schedule is open at present.
	ScheduleOpenReason = "ScheduleOpen"
	// GateWriteFailedReason: a gate of the schedule could not be written.
	GateWriteFailedReason = "GateWriteFailed"
)

// Reasons of DeploymentBlocked.
const (
	// UnhealthyHealthChecksReason: a selected HealthCheck is Unhealthy.
	UnhealthyHealthChecksReason = "UnhealthyHealthChecks"
	// HealthChecksHealthyReason: no selected HealthCheck is Unhealthy.
	HealthChecksHealthyReason = "HealthChecksHealthy"
	// ManualDeploymentReason: a manual choice goes past the health block.
	ManualDeploymentReason = "ManualDeployment"
)

// Reasons of BakeFailureDisabled.
const (
	// NormalReason: the bake can fail.
	NormalReason = "Normal"
	// DeployedWithUnhealthyHealthChecksReason: a person promoted the release
	// while a HealthCheck was Unhealthy.
	DeployedWithUnhealthyHealthChecksReason = "DeployedWithUnhealthyHealthChecks"
)

// Reasons of RequestAccepted.
const (
	// RetryNotNeededReason: there is no failed bake that could be retried.
	RetryNotNeededReason = "RetryNotNeeded"
	// ForceDeployNotNeededReason: force-deploy names the current release.
	ForceDeployNotNeededReason = "ForceDeployNotNeeded"
	// UnblockNotNeededReason: no failure holds anything back.
	UnblockNotNeededReason = "UnblockNotNeeded"
	// BypassNotNeededReason: bypass-gates names the current release.
	BypassNotNeededReason = "BypassNotNeeded"
	// NoSuchCandidateReason: bypass-gates names no candidate. It takes effect
	// when the release becomes one.
	NoSuchCandidateReason = "NoSuchCandidate"
	// InvalidRequestReason: the value of an annotation means nothing.
	InvalidRequestReason = "InvalidRequest"
)

// Reasons of TargetsApplied and of a target's events.
const (
	// TargetsAppliedReason: every target reports the release applied.
	TargetsAppliedReason = "TargetsApplied"
	// NoTargetsReason: no Flux object is annotated with the Rollout's name.
	NoTargetsReason = "NoTargets"
	// TargetsPendingReason: Flux has not yet reported every target applied.
	TargetsPendingReason = "TargetsPending"
	// TargetFailedReason: writing a target, or Flux applying it, failed.
	TargetFailedReason = "TargetFailed"
	// DigestMismatchReason: Flux has pulled other content by the release's tag than
	// the release is.
	DigestMismatchReason = "DigestMismatch"
	// TargetConflictReason: something in a target keeps the version from
	// taking effect.
	TargetConflictReason = "TargetConflict"
	// TargetRestoredReason: a target that was changed by hand, or annotated
	// later, was brought to the current version.
	TargetRestoredReason = "TargetRestored"
	// RolloutNotFoundReason: an annotation names a Rollout that does not exist.
	RolloutNotFoundReason = "RolloutNotFound"
	// StatusNotWrittenReason: the API server does not take the status of the
	// Rollout, and so nothing is promoted.
	StatusNotWrittenReason = "StatusNotWritten"
)

// Reasons why a candidate is, or is not, promoted.
const (
	// EligibleReason: nothing holds the candidate back.
	EligibleReason = "Eligible"
	// PinnedReason: spec.wantedVersion holds another version.
	PinnedReason = "Pinned"
	// SupersededReason: a newer candidate is eligible.
	SupersededReason = "Superseded"
	// BakeRunningReason: the promotion before it has no outcome yet.
	BakeRunningReason = "BakeRunning"
	// ForcedReason: force-deploy asks for another version.
	ForcedReason = "Forced"
	// NotNextReason: spec.releaseStrategy takes an older candidate first.
	NotNextReason = "NotNext"
	// TagsUnknownReason: spec.releaseStrategy skips no release, and not all tags of
	// the registry are known.
	TagsUnknownReason = "TagsUnknown"
	// PositionUnknownReason: the policy can rank no release of the history, so that
	// the candidate may be older than what is deployed, or not the next one.
	PositionUnknownReason = "PositionUnknown"
	// PreviousBakeFailedReason: the current release's bake has failed. Also the
	// reason of BakeFailureDisabled for the promotion that follows.
	PreviousBakeFailedReason = "PreviousBakeFailed"
	// FailedBeforeReason: the candidate itself failed here before.
	FailedBeforeReason = "FailedBefore"
	// ReleaseIntervalReason: spec.releaseUpdateInterval is not over.
	ReleaseIntervalReason = "ReleaseInterval"
	// NotOfferedReason: the ImagePolicy does not, or no longer, offer it.
	NotOfferedReason = "NotOffered"
)

// Reasons of events that no condition carries.
const (
	// BakeTimeDeployingReason: a release was promoted and awaits its bake.
	BakeTimeDeployingReason = "BakeTimeDeploying"
	// BakeTimeStartedReason: the release is applied and healthy; the bake
	// clock runs.
	BakeTimeStartedReason = "BakeTimeStarted"
	// BakeTimeCancelledReason: a newer choice ended the bake.
	BakeTimeCancelledReason = "BakeTimeCancelled"
	// DeploymentSucceededReason: the release was applied; nothing more to wait
	// for.
	DeploymentSucceededReason = "DeploymentSucceeded"
	// RetryRequestedReason: a failed bake is judged anew.
	RetryRequestedReason = "RetryRequested"
	// ReleaseAdoptedReason: the history was lost; the running version was
	// taken over as its first entry.
	ReleaseAdoptedReason = "ReleaseAdopted"
	// TagMovedReason: a tag was pushed again with another digest.
	TagMovedReason = "TagMoved"
	// UnreadableReason: the API server has stored a value in the object that the
	// controller cannot decode. The event is on that object, whatever its kind.
	UnreadableReason = "Unreadable"
	// ReleaseDetectedReason: a release became a candidate. Flux events only.
	ReleaseDetectedReason = "ReleaseDetected"
	// RolledBackReason: a person promoted a release that is older than the one
	// before. Flux events only.
	RolledBackReason = "RolledBack"
	// HealthCheckBlockingReason: an Unhealthy HealthCheck holds back
	// promotions.
	HealthCheckBlockingReason = "HealthCheckBlocking"
)
