// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"slices"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// by is what holds a release.
type by uint8

const (
	// aGate: a RolloutGate, a schedule, or that they could not be read.
	aGate by = iota + 1
	// anApproval: a gate that asks for approvals, or that they could not be read.
	anApproval
	// anEnvironment: the Environment of the Rollout leaves promotions to users.
	anEnvironment
	// anUpstream: an environment before this one.
	anUpstream
	// aFailure: here, or elsewhere.
	aFailure
)

// reasons is the one table of what holds a release for which reason. Of those of an upstream,
// the most important come first. A reason that is not here stands for itself: clients that know
// only gates are not shown such a hold as a closed gate.
var reasons = []struct {
	reason string
	by     by
}{
	{v1alpha1.SomeGatesBlockingReason, aGate},
	{v1alpha1.NoAllowedVersionsReason, aGate},
	{v1alpha1.ScheduleClosedReason, aGate},
	{v1alpha1.InvalidScheduleReason, aGate},
	{v1alpha1.GateListFailedReason, aGate},
	{v1alpha1.ApprovalRequiredReason, anApproval},
	{v1alpha1.ApprovalRejectedReason, anApproval},
	{v1alpha1.IdentityNotVerifiedReason, anApproval},
	{v1alpha1.ApprovalListFailedReason, anApproval},
	{environmentsv1.AwaitingPromotionReason, anEnvironment},
	{environmentsv1.UpstreamWithdrawnReason, anUpstream},
	{environmentsv1.UpstreamFailedReason, anUpstream},
	{environmentsv1.UpstreamSkippedReason, anUpstream},
	{environmentsv1.UpstreamUnknownReason, anUpstream},
	{environmentsv1.UpstreamPendingReason, anUpstream},
	{environmentsv1.UpstreamSoakingReason, anUpstream},
	{v1alpha1.FailedBeforeReason, aFailure},
	{v1alpha1.QuarantinedReason, aFailure},
	{v1alpha1.QuarantineListFailedReason, aFailure},
}

func isBy(reason string, each ...by) bool {
	i := rank(reason)
	return i >= 0 && slices.Contains(each, reasons[i].by)
}

// rank is lower for what is more important; -1 if the table does not have the reason.
func rank(reason string) int {
	for i := range reasons {
		if reasons[i].reason == reason {
			return i
		}
	}
	return -1
}

// IsOfGates reports whether a gate, a schedule or an Environment holds a release for the
// reason.
func IsOfGates(reason string) bool { return isBy(reason, aGate, anApproval, anEnvironment, anUpstream) }

// IsOfApprovals reports whether a gate holds a release for the reason because approvals are
// missing. No bypass lifts that.
func IsOfApprovals(reason string) bool { return isBy(reason, anApproval) }

// IsOfUpstreams reports whether an environment before this one holds a release for the
// reason.
func IsOfUpstreams(reason string) bool { return isBy(reason, anUpstream) }

// IsUnknownToOthers reports whether no other client of this API knows the reason. A
// dashboard that looks at gates would show such a release as one that may go.
func IsUnknownToOthers(reason string) bool { return isBy(reason, anEnvironment, anUpstream, aFailure) }

// ByImportance compares the reasons of two holds of upstreams: the more important sorts
// before the other.
func ByImportance(a, b Hold) int { return rank(a.Reason) - rank(b.Reason) }
