// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons why a candidate is not promoted, and of the condition GatesPassing of its
// Rollout.
const (
	// UpstreamPendingReason: an environment before this one has not proven the release yet.
	UpstreamPendingReason = "UpstreamPending"
	// UpstreamSoakingReason: the release has not been healthy for long enough there.
	UpstreamSoakingReason = "UpstreamSoaking"
	// UpstreamFailedReason: the release has failed there.
	UpstreamFailedReason = "UpstreamFailed"
	// UpstreamSkippedReason: the environment before this one runs a newer release, and has
	// not proven this one.
	UpstreamSkippedReason = "UpstreamSkipped"
	// UpstreamWithdrawnReason: the environment before this one went back from the release
	// to an older one.
	UpstreamWithdrawnReason = "UpstreamWithdrawn"
	// UpstreamUnknownReason: an Environment cannot be used, or it is not known what an
	// environment before this one says of the release.
	UpstreamUnknownReason = "UpstreamUnknown"
	// AwaitingPromotionReason: an Environment leaves the promotion to users.
	AwaitingPromotionReason = "AwaitingPromotion"
)

// Reasons of the condition RequestAccepted of a Rollout.
const (
	// BypassNeedsReasonReason: an Environment requires a reason together with bypass-gates.
	BypassNeedsReasonReason = "BypassNeedsReason"
	// BypassDeniedReason: an Environment lets nothing past by bypass-gates.
	BypassDeniedReason = "BypassDenied"
	// BypassEndedReason: bypass-gates names what cannot go past an Environment now.
	BypassEndedReason = "BypassEnded"
	// PromoteNotNeededReason: there is nothing that the annotation promote could promote.
	PromoteNotNeededReason = "PromoteNotNeeded"
)

// UpstreamWithdrewCondition is the type of a condition of a Rollout. It is True while an
// environment before this one has gone back from the release that runs here, or the
// release has failed there since. It is removed otherwise.
const UpstreamWithdrewCondition = "UpstreamWithdrew"

// UpstreamWithdrewReason is the reason of the condition UpstreamWithdrew, and of the event
// when it becomes True.
const UpstreamWithdrewReason = "UpstreamWithdrew"

// Reasons of Ready and Stalled of an Environment.
const (
	// SucceededReason: the Environment can be used.
	SucceededReason = "Succeeded"
	// RolloutNotFoundReason: the Rollout that spec.rolloutRef names does not exist.
	RolloutNotFoundReason = "RolloutNotFound"
	// UpstreamNotFoundReason: an Environment that is named as an upstream does not exist.
	UpstreamNotFoundReason = "UpstreamNotFound"
	// UpstreamUnreadableReason: it could not be read what an upstream says, or it says
	// nothing yet.
	UpstreamUnreadableReason = "UpstreamUnreadable"
	// UpstreamCycleReason: the Environment comes after itself.
	UpstreamCycleReason = "UpstreamCycle"
	// UpstreamNotTrustedReason: the report of an upstream is not signed by a trusted key,
	// is about something else, or is older than one that was verified before.
	UpstreamNotTrustedReason = "UpstreamNotTrusted"
	// NoTrustedKeysReason: there is no key to verify the report of an upstream with.
	NoTrustedKeysReason = "NoTrustedKeys"
	// SigningKeyMissingReason: the controller has no key, or no name of its cluster, to
	// sign the report of this environment with.
	SigningKeyMissingReason = "SigningKeyMissing"
	// PublishFailedReason: the report of this environment could not be stored in the
	// registry. It is tried again.
	PublishFailedReason = "PublishFailed"
	// ReportTakenReason: there is the report of another cluster, or of another Environment of
	// the same Rollout, in the place of the report of this environment.
	ReportTakenReason = "ReportTaken"
)
