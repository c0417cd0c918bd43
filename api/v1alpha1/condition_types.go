// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Condition types of a Rollout. Schedules have the first three.
const (
	// ReadyCondition is True while the newest promotion is under way or has succeeded.
	// While Reconciling is also True, the outcome is still open. It is False while a
	// promotion is under way whose release is known not to be healthy, or that takes too long.
	ReadyCondition = "Ready"
	// ReconcilingCondition is True while the controller waits for something that it
	// expects to happen. It is removed otherwise.
	ReconcilingCondition = "Reconciling"
	// StalledCondition is True while a user must act. It is removed otherwise.
	StalledCondition = "Stalled"
	// ReleasesUpdatedCondition is False while the ImagePolicy cannot be read or used.
	ReleasesUpdatedCondition = "ReleasesUpdated"
	// GatesPassingCondition is False while gates or schedules hold back a candidate.
	GatesPassingCondition = "GatesPassing"
	// DeploymentBlockedCondition is True while the health of the running release holds
	// back automatic promotions.
	DeploymentBlockedCondition = "DeploymentBlocked"
	// BakeFailureDisabledCondition is True while the current promotion cannot fail,
	// either because it replaces a failed one, or because a user made it while a check
	// was Unhealthy. This is decided when the promotion is recorded.
	BakeFailureDisabledCondition = "BakeFailureDisabled"
	// RequestAcceptedCondition is False after a request by annotation that could not be
	// fulfilled, until the next promotion or retry. It is absent otherwise.
	RequestAcceptedCondition = "RequestAccepted"
	// TargetsAppliedCondition is True while every target reports that the current release
	// is applied.
	TargetsAppliedCondition = "TargetsApplied"
	// RolledBackCondition is True while the current promotion is an automatic rollback. It
	// is False while spec.rollback is set and a failed promotion is not answered by one, at
	// least not yet. It is absent otherwise.
	RolledBackCondition = "RolledBack"
	// RunsUnapprovedCondition is True if content runs that nobody has approved, although
	// gates ask for it.
	RunsUnapprovedCondition = "RunsUnapproved"
)

// Reasons of RolledBack. ScheduleClosed, Pinned and Forced are reasons of it, too.
const (
	// AutomaticRollbackReason: the release that succeeded last was promoted again.
	AutomaticRollbackReason = "AutomaticRollback"
	// RollbackOverdueReason: the rollback has taken longer than spec.rollback.overdueAfter.
	// It is also a reason of Stalled, and of an event.
	RollbackOverdueReason = "RollbackOverdue"
	// RollbackDelayedReason: spec.rollback.delay is not over.
	RollbackDelayedReason = "RollbackDelayed"
	// CauseNotSelectedReason: spec.rollback.causes does not name the cause of the failure.
	CauseNotSelectedReason = "CauseNotSelected"
	// RollbackNotDueReason: the promotion failed before spec.rollback was set, or another
	// client has written its history entry since. A user decides.
	RollbackNotDueReason = "RollbackNotDue"
	// NoProvenReleaseReason: no other release of the history has succeeded here.
	NoProvenReleaseReason = "NoProvenRelease"
	// BelowRollbackFloorReason: the release that succeeded last is older than
	// spec.rollback.notBelow.
	BelowRollbackFloorReason = "BelowRollbackFloor"
	// RollbackBarrierReason: a release that is marked as forward-only is in between.
	RollbackBarrierReason = "RollbackBarrier"
	// RollbackBarrierUnknownReason: it is not known whether a release in between is marked
	// as forward-only.
	RollbackBarrierUnknownReason = "RollbackBarrierUnknown"
	// MetadataDisabledReason: the controller does not read metadata from registries, so it
	// cannot know which releases are forward-only.
	MetadataDisabledReason = "MetadataDisabled"
)

// Reasons of Ready, Reconciling and Stalled.
const (
	// RolloutSucceededReason: the release was recorded, and is being deployed or was
	// deployed.
	RolloutSucceededReason = "RolloutSucceeded"
	// HealthNotProvenReason: the release that is being deployed, or that bakes, is not healthy
	// for longer than it takes to replace a pod. The bake time stands still.
	HealthNotProvenReason = "HealthNotProven"
	// BakeOverdueReason: the bake is overdue, and has no outcome yet. It is also
	// the reason of an event.
	BakeOverdueReason = "BakeOverdue"
	// RolloutFailedReason: the Rollout's releases, gates, targets or health could not be
	// read or written.
	RolloutFailedReason = "RolloutFailed"
	// NoReleasesReason: the ImagePolicy has not named a release yet.
	NoReleasesReason = "NoReleases"
	// BakeTimePassedReason: the bake is over, and the release stayed healthy.
	BakeTimePassedReason = "BakeTimePassed"
	// BakeTimeFailedReason: a health check failed or the deadline passed.
	BakeTimeFailedReason = "BakeTimeFailed"
	// BakeTimeRetryingReason: a failed bake was retried and has not started again.
	BakeTimeRetryingReason = "BakeTimeRetrying"
	// DeploymentMarkedSuccessfulReason: a user marked the bake as successful.
	DeploymentMarkedSuccessfulReason = "DeploymentMarkedSuccessful"
	// InvalidWantedVersionReason: spec.wantedVersion is not a valid OCI tag.
	InvalidWantedVersionReason = "InvalidWantedVersion"
	// UnknownReleaseReason: force-deploy names an unknown release.
	UnknownReleaseReason = "UnknownRelease"
	// InvalidSelectorReason: spec.healthCheckSelector cannot be parsed.
	InvalidSelectorReason = "InvalidSelector"
	// AccessDeniedReason: the Rollout or its ImagePolicy refers to another namespace.
	// Either the controller runs with --no-cross-namespace-refs, or the ImageRepository
	// there does not allow access from the namespace.
	AccessDeniedReason = "AccessDenied"
	// FirstReleaseNotAppliedReason: spec.firstRelease is Applied, and not all targets
	// have applied a version yet that could become the first entry.
	FirstReleaseNotAppliedReason = "FirstReleaseNotApplied"
	// FirstReleaseUnknownReason: spec.firstRelease is Applied, and a target has no
	// version, or one that is not a valid tag.
	FirstReleaseUnknownReason = "FirstReleaseUnknown"
	// NotPromotedReason: nothing was promoted yet, and an OCIRepository has pulled a
	// version that was never promoted.
	NotPromotedReason = "NotPromoted"

	// TargetsDisagreeReason: the targets have different versions, and either the history
	// is lost, or the version of the targets should become its first entry.
	TargetsDisagreeReason = "TargetsDisagree"
	// HistoryOutdatedReason: a newer promotion than those of the history has written the
	// targets, so the status is an old one that was restored. Nothing is written to targets.
	// It is also a reason why a candidate is not promoted.
	HistoryOutdatedReason = "HistoryOutdated"
	// HealthCheckListFailedReason: the HealthChecks could not be read.
	HealthCheckListFailedReason = "HealthCheckListFailed"
	// GateListFailedReason: gates or schedules could not be read.
	GateListFailedReason = "GateListFailed"
	// ProgressingReason: the promotion is under way.
	ProgressingReason = "Progressing"
)

// Reasons of ReleasesUpdated.
const (
	// ReleasesUpdatedReason: the ImagePolicy's releases are among the known releases.
	ReleasesUpdatedReason = "ReleasesUpdated"
	// FloatingTagReason: the releases are known, and the ImagePolicy admits a single tag,
	// such as latest: what is pushed to it goes out without a decision.
	FloatingTagReason = "FloatingTag"
	// ImagePolicyNotFoundReason: the ImagePolicy does not exist.
	ImagePolicyNotFoundReason = "ImagePolicyNotFound"
	// ImagePolicyNotReadyReason: the ImagePolicy or its ImageRepository reports an error,
	// such as an unreachable registry.
	ImagePolicyNotReadyReason = "ImagePolicyNotReady"
	// ImagePolicyUnreadableReason: the ImagePolicy could not be read.
	ImagePolicyUnreadableReason = "ImagePolicyUnreadable"
	// SuspendedReason: the ImagePolicy or its ImageRepository is suspended, so that new
	// releases are not seen.
	SuspendedReason = "Suspended"
	// InvalidReleaseTagReason: the selected tag is not a semver version, although the
	// policy orders by semver.
	InvalidReleaseTagReason = "InvalidReleaseTag"
	// InvalidImagePolicyReason: the policy's range or pattern is invalid.
	InvalidImagePolicyReason = "InvalidImagePolicy"
)

// Reasons of GatesPassing, and of candidates that gates or schedules hold back.
const (
	// AllGatesPassingReason: a candidate passes every gate.
	AllGatesPassingReason = "AllGatesPassing"
	// GatesBypassedReason: bypass-gates names a candidate. Only that one is considered,
	// and gates do not hold it back.
	GatesBypassedReason = "GatesBypassed"
	// NoReleaseCandidatesReason: there is no candidate to gate.
	NoReleaseCandidatesReason = "NoReleaseCandidates"
	// SomeGatesBlockingReason: at least one gate is not passing.
	SomeGatesBlockingReason = "SomeGatesBlocking"
	// NoAllowedVersionsReason: the gates' allowed versions leave no candidate.
	NoAllowedVersionsReason = "NoAllowedVersions"
	// ScheduleClosedReason: a schedule is closed now.
	ScheduleClosedReason = "ScheduleClosed"
	// InvalidScheduleReason: a schedule cannot be evaluated.
	InvalidScheduleReason = "InvalidSchedule"
)

// Reasons of a ClusterRolloutGate's Ready, in addition to InvalidSelector.
const (
	// RolloutsSelectedReason: the gate can be evaluated.
	RolloutsSelectedReason = "RolloutsSelected"
)

// Reasons of a schedule's Ready, Reconciling and Stalled, in addition to ScheduleClosed
// and InvalidSchedule.
const (
	// ScheduleOpenReason: the schedule is open now.
	ScheduleOpenReason = "ScheduleOpen"
	// GateWriteFailedReason: a gate of the schedule could not be written.
	GateWriteFailedReason = "GateWriteFailed"
)

// Reasons of DeploymentBlocked.
const (
	// HealthCheckMissingReason: a HealthCheck that says whether a target is rolled out does
	// not exist yet.
	HealthCheckMissingReason = "HealthCheckMissing"
	// UnhealthyHealthChecksReason: a selected HealthCheck is Unhealthy.
	UnhealthyHealthChecksReason = "UnhealthyHealthChecks"
	// HealthCheckInvalidReason: a selected HealthCheck cannot be measured as it is.
	HealthCheckInvalidReason = "HealthCheckInvalid"
	// HealthChecksHealthyReason: no selected HealthCheck is Unhealthy.
	HealthChecksHealthyReason = "HealthChecksHealthy"
	// ManualDeploymentReason: a manual choice is promoted although checks are Unhealthy.
	ManualDeploymentReason = "ManualDeployment"
)

// Reasons of BakeFailureDisabled.
const (
	// NormalReason: the bake can fail.
	NormalReason = "Normal"
	// DeployedWithUnhealthyHealthChecksReason: a user promoted the release while a
	// HealthCheck was Unhealthy.
	DeployedWithUnhealthyHealthChecksReason = "DeployedWithUnhealthyHealthChecks"
)

// Reasons of RequestAccepted.
const (
	// RetryNotNeededReason: there is no failed bake to retry.
	RetryNotNeededReason = "RetryNotNeeded"
	// ForceDeployNotNeededReason: force-deploy names the current release.
	ForceDeployNotNeededReason = "ForceDeployNotNeeded"
	// UnblockNotNeededReason: no failure holds back a candidate.
	UnblockNotNeededReason = "UnblockNotNeeded"
	// BypassNotNeededReason: bypass-gates names the current release.
	BypassNotNeededReason = "BypassNotNeeded"
	// AdoptNotNeededReason: the history is not older than the targets.
	AdoptNotNeededReason = "AdoptNotNeeded"
	// NoSuchCandidateReason: bypass-gates or promote does not name a candidate. It takes
	// effect when the release becomes one.
	NoSuchCandidateReason = "NoSuchCandidate"
	// InvalidRequestReason: the value of an annotation is invalid.
	InvalidRequestReason = "InvalidRequest"
)

// Reasons of TargetsApplied and of a target's events.
const (
	// TargetsAppliedReason: every target reports that the release is applied.
	TargetsAppliedReason = "TargetsApplied"
	// NoTargetsReason: no Flux object is annotated with the Rollout's name.
	NoTargetsReason = "NoTargets"
	// TargetsPendingReason: Flux has not yet reported that every target is applied.
	TargetsPendingReason = "TargetsPending"
	// TargetFailedReason: a target could not be written, or Flux failed to apply it.
	TargetFailedReason = "TargetFailed"
	// DigestMismatchReason: the content that Flux pulled by the release's tag has another
	// digest than the release.
	DigestMismatchReason = "DigestMismatch"
	// TargetConflictReason: something in a target keeps the version from taking effect.
	TargetConflictReason = "TargetConflict"
	// DigestUnknownReason: a target gets the digest of the release, which is not known.
	DigestUnknownReason = "DigestUnknown"
	// TargetRestoredReason: a target that was changed manually, or annotated later, was
	// set to the current version.
	TargetRestoredReason = "TargetRestored"
	// TargetPinnedReason: the digest of the current release was written into a target that
	// had its tag.
	TargetPinnedReason = "TargetPinned"
	// TargetUnpinnedReason: the digest was removed from an OCIRepository, which pulls by the
	// tag again.
	TargetUnpinnedReason = "TargetUnpinned"
	// ConsumerLostReason: the last Kustomization or HelmRelease that applied an OCIRepository
	// is gone.
	ConsumerLostReason = "ConsumerLost"
	// RolloutNotFoundReason: an annotation names a Rollout that does not exist.
	RolloutNotFoundReason = "RolloutNotFound"
	// StatusNotWrittenReason: the API server does not accept the status of the Rollout,
	// so nothing is promoted.
	StatusNotWrittenReason = "StatusNotWritten"
	// QuarantineNotWrittenReason: the failure of a release could not be reported to its
	// ReleaseQuarantine. Promotions and rollbacks go on.
	QuarantineNotWrittenReason = "QuarantineNotWritten"
)

// Reasons why a candidate is promoted or is not promoted.
const (
	// EligibleReason: nothing holds back the candidate.
	EligibleReason = "Eligible"
	// PinnedReason: spec.wantedVersion pins another version.
	PinnedReason = "Pinned"
	// SupersededReason: a newer candidate is eligible.
	SupersededReason = "Superseded"
	// BakeRunningReason: the bake of the current release has no outcome yet.
	BakeRunningReason = "BakeRunning"
	// ForcedReason: force-deploy requests another version.
	ForcedReason = "Forced"
	// NotNextReason: with spec.releaseStrategy Next, an older candidate is promoted
	// first.
	NotNextReason = "NotNext"
	// TagsUnknownReason: spec.releaseStrategy is Next, and not all tags of the registry
	// are known.
	TagsUnknownReason = "TagsUnknown"
	// SameVersionReason: the candidate has the same version as the deployed release, and
	// nothing tells which of them is newer.
	SameVersionReason = "SameVersion"
	// PositionUnknownReason: the policy can rank no release of the history, or ranks the tags
	// of another image. The candidate may be older than the deployed release, or may not be
	// the next one.
	PositionUnknownReason = "PositionUnknown"
	// PreviousBakeFailedReason: the current release's bake has failed. It is also the
	// reason of BakeFailureDisabled for the promotion that follows.
	PreviousBakeFailedReason = "PreviousBakeFailed"
	// FailedBeforeReason: this candidate has failed before in this Rollout.
	FailedBeforeReason = "FailedBefore"
	// ReleaseIntervalReason: spec.releaseUpdateInterval is not over.
	ReleaseIntervalReason = "ReleaseInterval"
	// NotOfferedReason: the ImagePolicy does not offer the release, or no longer offers
	// it.
	NotOfferedReason = "NotOffered"
	// RollbackLimitReason: as many promotions as spec.rollback.maxConsecutive have failed
	// one after another.
	RollbackLimitReason = "RollbackLimit"
	// QuarantinedReason: the release is in quarantine. It is also a reason of Stalled, if a
	// user has chosen the release and the quarantine holds that, too.
	QuarantinedReason = "Quarantined"
	// QuarantineListFailedReason: the quarantines could not be read.
	QuarantineListFailedReason = "QuarantineListFailed"
)

// Reasons of GatesPassing, and of candidates, where gates ask for approvals.
const (
	// ApprovalRequiredReason: people are missing who approve the release.
	ApprovalRequiredReason = "ApprovalRequired"
	// ApprovalRejectedReason: somebody rejects the release whose approval would count.
	ApprovalRejectedReason = "ApprovalRejected"
	// IdentityNotVerifiedReason: nobody vouches for the names in approvals.
	IdentityNotVerifiedReason = "IdentityNotVerified"
	// ApprovalListFailedReason: the decisions on a release could not be read, or there are
	// too many.
	ApprovalListFailedReason = "ApprovalListFailed"
)

// RunsUnapprovedReason is the reason of RunsUnapproved: other content runs under the tag than
// was approved.
const RunsUnapprovedReason = "RunsUnapproved"

// Reasons of events that are not reasons of a condition.
const (
	// ApprovedReason: a release was promoted that people have approved.
	ApprovedReason = "Approved"
	// OverriddenReason: a release was promoted although approvals were missing.
	OverriddenReason = "Overridden"
	// BakeTimeDeployingReason: a release was promoted, and its bake has not started yet.
	BakeTimeDeployingReason = "BakeTimeDeploying"
	// BakeTimeStartedReason: the release is applied and healthy, and the bake time runs.
	BakeTimeStartedReason = "BakeTimeStarted"
	// BakeTimeCancelledReason: a newer choice ended the bake.
	BakeTimeCancelledReason = "BakeTimeCancelled"
	// DeploymentSucceededReason: the release was applied, and there is no bake time to
	// wait for.
	DeploymentSucceededReason = "DeploymentSucceeded"
	// RetryRequestedReason: a failed bake is re-evaluated.
	RetryRequestedReason = "RetryRequested"
	// ReleaseAdoptedReason: the history was lost, or older than the targets. The version that
	// the targets carry became its newest entry.
	ReleaseAdoptedReason = "ReleaseAdopted"
	// TagMovedReason: a tag was pushed again with another digest.
	TagMovedReason = "TagMoved"
	// UnreadableReason: the API server has stored a value in the object that the
	// controller cannot decode. The event is on that object, whatever its kind.
	UnreadableReason = "Unreadable"
	// ReleaseDetectedReason: a release became a candidate. Only Flux events have it.
	ReleaseDetectedReason = "ReleaseDetected"
	// RolledBackReason: a release that is older than the one before was promoted by a user,
	// or by a rollback after a failure. Only Flux events have it.
	RolledBackReason = "RolledBack"
	// ReleaseQuarantinedReason: a release failed, and was reported to a quarantine. The event
	// is on the ReleaseQuarantine.
	ReleaseQuarantinedReason = "ReleaseQuarantined"
	// RollbackNotPossibleReason: a failure is to be answered by a rollback, but there is
	// nothing to go back to.
	RollbackNotPossibleReason = "RollbackNotPossible"
	// HealthCheckBlockingReason: an Unhealthy HealthCheck holds back promotions.
	HealthCheckBlockingReason = "HealthCheckBlocking"
)
