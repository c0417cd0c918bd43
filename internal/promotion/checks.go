// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Verdict is the result of the checks for one candidate.
type Verdict struct {
	// Release that was evaluated.
	Release v1alpha1.VersionInfo
	// Holds are the reasons against promoting it now, the most important first.
	Holds []verdict.Hold
}

// Eligible reports whether the candidate has no holds.
func (v Verdict) Eligible() bool { return len(v.Holds) == 0 }

// HeldBy reports whether the candidate has a hold for one of the reasons.
func (v Verdict) HeldBy(reasons ...string) bool {
	for _, hold := range v.Holds {
		for _, reason := range reasons {
			if hold.Reason == reason {
				return true
			}
		}
	}
	return false
}

// check is a condition that must be true to promote a release without a user's request.
// It returns nil if the condition is true.
type check func(Input, v1alpha1.VersionInfo) *verdict.Hold

// rule is a check, with the circumstances that lift it. The result of a check may be the
// same for every release (same). Then it is evaluated only once, because there can be
// thousands of releases.
type rule struct {
	require check
	unless  lift
	same    bool
}

// lift is a set of circumstances that let a release go past a check.
type lift uint8

const (
	// chosen: a user pins or forces the release.
	chosen lift = 1 << iota
	// first: the environment has no release yet. Either there is nothing to protect, or
	// chooseFirst decides it itself.
	first
	// bypassed: the annotation bypass-gates names the release.
	bypassed
	// unblocked: the annotation unblock-failed lets one promotion go past a failure.
	unblocked
	// promoted: the annotation promote names the release.
	promoted
)

// promotionChecks is the complete policy of promotion, in the order in which the reasons
// are reported: what holds a release, and what lets it go all the same.
var promotionChecks = []rule{
	{require: historyUpToDate, unless: chosen, same: true},
	{require: leftToTheController, unless: chosen | first},
	{require: policyReadable, unless: chosen | first, same: true},
	{require: offeredByPolicy, unless: chosen},
	{require: appliedComesFirst, unless: chosen},
	{require: everyTagKnown, unless: chosen | first, same: true},
	{require: notFailedBefore, unless: chosen | first | unblocked},
	{require: notQuarantined, unless: chosen | unblocked},
	{require: notRecalled},
	{require: provenUpstream, unless: chosen},
	{require: noBakeRunning, unless: chosen | first, same: true},
	{require: lastBakeNotFailed, unless: chosen | first | unblocked, same: true},
	{require: withinRollbackLimit, unless: chosen | first | unblocked, same: true},
	{require: everyCheckMeasurable, unless: chosen | first, same: true},
	{require: nothingUnhealthy, unless: chosen | first | unblocked, same: true},
	{require: everyGatePasses, unless: chosen | first | bypassed},
	{require: everyGateAllows, unless: chosen | first | bypassed},
	{require: everyScheduleValid, unless: chosen | first | bypassed},
	{require: everyScheduleOpen, unless: chosen | first | bypassed},
	{require: intervalOver, unless: chosen | first, same: true},
	{require: promotedByAPerson, unless: chosen | promoted},
}

// holdsPast returns what holds a release although circumstances lift some of the checks.
func holdsPast(in Input, release v1alpha1.VersionInfo, circumstances lift) []verdict.Hold {
	circumstances |= requested(in.Rollout, release.Tag)
	var holds []verdict.Hold
	for _, rule := range promotionChecks {
		if rule.unless&circumstances != 0 {
			continue
		}
		if hold := rule.require(in, release); hold != nil {
			holds = append(holds, *hold)
		}
	}
	return holds
}

// requested returns what users have lifted for a release by annotation.
func requested(rollout *v1alpha1.Rollout, tag string) lift {
	var lifted lift
	if rollout.UnblocksFailed() {
		lifted |= unblocked
	}
	if rollout.Annotations[v1alpha1.BypassGatesAnnotation] == tag {
		lifted |= bypassed
	}
	if rollout.Annotations[v1alpha1.PromoteAnnotation] == tag {
		lifted |= promoted
	}
	return lifted
}

// judge returns a verdict for every candidate, newest first. A release that was deleted
// from the registry is not a candidate: Flux could not pull it.
func judge(in Input, ledger []v1alpha1.VersionInfo) []Verdict {
	candidates := releases.CandidatesOf(in.Rollout, in.Policy, ledger)
	verdicts, withdrawn, said := make([]Verdict, 0, len(candidates)), in.Policy.Withdrawn(), sameForAll(in)
	for _, release := range candidates {
		if !withdrawn(release.Tag) {
			verdicts = append(verdicts, Verdict{Release: release, Holds: holdsOn(in, release, said)})
		}
	}
	considerOnlyBypassed(in, verdicts)
	if in.Rollout.Current() == nil {
		return verdicts // while nothing runs yet, no release can be skipped and none is older
	}
	switch deployed := releases.PositionOf(ledger, in.Rollout.Status.History, in.Policy); {
	case releases.BeforeMove(in.Rollout.Status.History, in.Policy) != nil:
		considerMovedImage(in.Rollout, in.Policy, verdicts)
	case deployed.Entry == nil:
		considerWithoutPosition(in.Rollout, in.Policy, verdicts)
	default:
		considerSameVersion(deployed, verdicts)
		considerOnlyNext(in, verdicts)
	}
	return verdicts
}

// holdsOn returns what holds a candidate, given what holds all of them.
func holdsOn(in Input, release v1alpha1.VersionInfo, said []*verdict.Hold) []verdict.Hold {
	var holds []verdict.Hold
	lifted := requested(in.Rollout, release.Tag)
	for i, rule := range promotionChecks {
		hold := said[i]
		if rule.unless&lifted != 0 {
			continue
		}
		if !rule.same {
			hold = rule.require(in, release)
		}
		if hold != nil {
			holds = append(holds, *hold)
		}
	}
	return holds
}

// sameForAll returns the holds that apply to every candidate, each at the index of its
// rule.
func sameForAll(in Input) []*verdict.Hold {
	said := make([]*verdict.Hold, len(promotionChecks))
	for i, rule := range promotionChecks {
		if rule.same {
			said[i] = rule.require(in, v1alpha1.VersionInfo{})
		}
	}
	return said
}

// considerOnlyBypassed holds the other candidates while a user lets one go past the
// gates.
func considerOnlyBypassed(in Input, verdicts []Verdict) {
	only := Bypassed(in, verdicts)
	if only == "" {
		return
	}
	hold := verdict.Hold{Reason: v1alpha1.GatesBypassedReason, Message: v1alpha1.BypassGatesAnnotation + " asks for " + only}
	for i := range verdicts {
		if verdicts[i].Release.Tag != only {
			verdicts[i].Holds = append(verdicts[i].Holds, hold)
		}
	}
}

// considerWithoutPosition holds candidates that may be older than the current release. It
// applies if nothing in the history can be ranked. Then only the newest of all is
// certainly not a step back, and nobody knows which release is the next one.
func considerWithoutPosition(rollout *v1alpha1.Rollout, policy releases.Policy, verdicts []Verdict) {
	if len(verdicts) == 0 {
		return
	}
	unranked := fmt.Sprintf("ImagePolicy %s cannot rank any release of the history", policy.Name)
	hold := verdict.Hold{
		Reason:  v1alpha1.PositionUnknownReason,
		Message: fmt.Sprintf("%s: only %s, the newest, is promoted automatically; pin another one to deploy it", unranked, verdicts[0].Release.Tag),
	}
	held := verdicts[1:]
	if rollout.Spec.ReleaseStrategy == v1alpha1.ReleaseNext {
		hold.Message, held = unranked+", so the next one is not known: pin the release to continue from", verdicts
	}
	for i := range held {
		held[i].Holds = append(held[i].Holds, hold)
	}
}

// considerMovedImage holds every candidate while the position is one of another image.
func considerMovedImage(rollout *v1alpha1.Rollout, policy releases.Policy, verdicts []Verdict) {
	before := releases.BeforeMove(rollout.Status.History, policy)
	hold := verdict.Hold{
		Reason: v1alpha1.PositionUnknownReason,
		Message: fmt.Sprintf("ImagePolicy %s ranks %s, and %s is of %s: pin the release to continue from",
			policy.Name, truncate.Text(policy.Ranked(), verdict.LongestName), before.Version.Tag, truncate.Text(before.Image, verdict.LongestName)),
	}
	for i := range verdicts {
		verdicts[i].Holds = append(verdicts[i].Holds, hold)
	}
}

// considerSameVersion holds the candidates that have the same version as what is deployed,
// if nothing tells whether they are newer.
func considerSameVersion(deployed releases.Position, verdicts []Verdict) {
	for i := range verdicts {
		release := verdicts[i].Release
		if deployed.Order.Placed(release).Relation(deployed.Placed) == releases.SameVersion {
			verdicts[i].Holds = append(verdicts[i].Holds, verdict.Hold{
				Reason: v1alpha1.SameVersionReason,
				Message: fmt.Sprintf("%s has the same version as %s, and the policy cannot tell which is newer: pin it to deploy it",
					release.Tag, deployed.Tag),
			})
		}
	}
}

// considerOnlyNext holds the candidates that are newer than the next one, if no release
// may be skipped. What an environment before this one has left behind will never be
// proven there, and what has the same version as the deployed one may be older. It is not the
// next one.
func considerOnlyNext(in Input, verdicts []Verdict) {
	if in.Rollout.Spec.ReleaseStrategy != v1alpha1.ReleaseNext {
		return
	}
	next := len(verdicts) - 1
	for next >= 0 && (in.Upstreams.IsLeftBehind(in.forUpstreams(), verdicts[next].Release) || verdicts[next].HeldBy(v1alpha1.SameVersionReason)) {
		next--
	}
	for i := range next {
		verdicts[i].Holds = append(verdicts[i].Holds, verdict.Hold{
			Reason: v1alpha1.NotNextReason, Message: "spec.releaseStrategy takes " + verdicts[next].Release.Tag + " first",
		})
	}
}

// Considered returns the candidates that are considered at present. These are all
// candidates, unless a user lets one go past the gates, or the strategy takes only the
// next one. If these two select different candidates, none can be promoted, and all are
// returned.
func Considered(verdicts []Verdict) []Verdict {
	considered := slices.DeleteFunc(slices.Clone(verdicts), func(v Verdict) bool {
		return v.HeldBy(v1alpha1.GatesBypassedReason, v1alpha1.NotNextReason, v1alpha1.PositionUnknownReason, v1alpha1.SameVersionReason)
	})
	if len(considered) == 0 {
		return verdicts
	}
	return considered
}

// leftToTheController checks that no user has chosen another version.
func leftToTheController(in Input, release v1alpha1.VersionInfo) *verdict.Hold {
	wanted := in.Rollout.ChosenManually()
	switch {
	case wanted == "" || wanted == release.Tag:
		return nil
	case in.Rollout.Pinned() == "":
		return &verdict.Hold{
			Reason:  v1alpha1.ForcedReason,
			Message: fmt.Sprintf("%s asks for %s; remove it to resume automatic promotions", v1alpha1.ForceDeployAnnotation, verdict.Quote(wanted)),
		}
	case !releases.IsTag(wanted):
		problem := impossible(in.Rollout, nil)
		return &verdict.Hold{Reason: problem.Reason, Message: problem.Message}
	}
	return &verdict.Hold{
		Reason:  v1alpha1.PinnedReason,
		Message: fmt.Sprintf("spec.wantedVersion pins %s; remove it to resume automatic promotions", wanted),
	}
}

// policyReadable checks that the ImagePolicy could be read and used.
func policyReadable(in Input, _ v1alpha1.VersionInfo) *verdict.Hold {
	if in.Policy.Problem == nil || !in.Policy.Blocking {
		return nil
	}
	return &verdict.Hold{Reason: in.Policy.Problem.Reason, Message: in.Policy.Problem.Message}
}

// offeredByPolicy checks that the release is not newer than the one the policy names. A
// release that was withdrawn from the registry must not be promoted. Of releases that are
// equal for the policy, it offers all.
func offeredByPolicy(in Input, release v1alpha1.VersionInfo) *verdict.Hold {
	if in.Policy.Latest == nil {
		return &verdict.Hold{
			Reason:  v1alpha1.NotOfferedReason,
			Message: fmt.Sprintf("ImagePolicy %s names no release at present", in.Policy.Name),
		}
	}
	if result, ok := in.Policy.Order.Precedence(release.Tag, in.Policy.Latest.Tag); !ok || result <= 0 {
		return nil
	}
	return &verdict.Hold{
		Reason:  v1alpha1.NotOfferedReason,
		Message: fmt.Sprintf("ImagePolicy %s now names %s, which is older", in.Policy.Name, in.Policy.Latest.Tag),
	}
}

// everyTagKnown checks that all tags of the registry are known, if no release may be
// skipped.
func everyTagKnown(in Input, _ v1alpha1.VersionInfo) *verdict.Hold {
	oneByOne := in.Rollout.Spec.ReleaseStrategy == v1alpha1.ReleaseNext
	if !oneByOne || in.Rollout.Current() == nil || in.Policy.Order.Kind() != releases.BySemver || in.Policy.Partial == "" {
		return nil
	}
	return &verdict.Hold{
		Reason:  v1alpha1.TagsUnknownReason,
		Message: "the next release is not known, because not all tags of the registry are known: " + in.Policy.Partial,
	}
}

// notFailedBefore checks that the newest promotion of this release did not fail here,
// under whichever name. If the Rollout goes back by itself, other content under the same
// tag is another release.
func notFailedBefore(in Input, release v1alpha1.VersionInfo) *verdict.Hold {
	entry := newestPromotion(in.Rollout, in.Policy, release)
	if entry.State() != v1alpha1.BakeFailed || in.Quarantines.Lift(entry.Quarantine, failureOf(in.Rollout, entry)) || in.Rollout.Spec.RollsBack() && releases.Differs(entry.Version.Digest, release.Digest) {
		return nil
	}
	return &verdict.Hold{
		Reason:  v1alpha1.FailedBeforeReason,
		Message: fmt.Sprintf("%s failed here before; pin it, or annotate the Rollout with unblock-failed, to try it again", entry.Version.Tag),
	}
}

// newestPromotion returns the newest entry of a release; nil if there is none. A promotion
// of another image was one of another release.
func newestPromotion(rollout *v1alpha1.Rollout, policy releases.Policy, release v1alpha1.VersionInfo) *v1alpha1.DeploymentHistoryEntry {
	for i := range rollout.Status.History {
		entry := &rollout.Status.History[i]
		same := entry.Version.Tag == release.Tag ||
			releases.IsSame(entry.Version.Digest, release.Digest) && policy.Order.Relation(entry.Version, release) == releases.SameRelease
		if same && !policy.IsOfAnother(entry) {
			return entry
		}
	}
	return nil
}

// noBakeRunning checks that the previous promotion has its outcome. If nothing protects a
// promotion and releases may be skipped, there is nothing to wait for.
func noBakeRunning(in Input, _ v1alpha1.VersionInfo) *verdict.Hold {
	current := in.Rollout.Current()
	skippable := !Protected(&in.Rollout.Spec) && !current.IsRollback() && in.Rollout.Spec.ReleaseStrategy != v1alpha1.ReleaseNext
	if !current.State().Running() || skippable || in.Rollout.UnblocksFailed() && isOverdue(in.Now, in.Rollout, in.Targets) {
		return nil
	}
	return &verdict.Hold{
		Reason:  v1alpha1.BakeRunningReason,
		Message: fmt.Sprintf("%s is still %s", current.Version.Tag, current.State()),
	}
}

// lastBakeNotFailed checks that the current release has not failed.
func lastBakeNotFailed(in Input, _ v1alpha1.VersionInfo) *verdict.Hold {
	current := in.Rollout.Current()
	if current.State() != v1alpha1.BakeFailed {
		return nil
	}
	return &verdict.Hold{
		Reason: v1alpha1.PreviousBakeFailedReason,
		Message: fmt.Sprintf("the bake of %s failed; to continue, pin a version, or annotate the Rollout with retry or unblock-failed",
			current.Version.Tag),
	}
}

// nothingUnhealthy checks that no selected HealthCheck is Unhealthy, and that all of them
// could be read.
func nothingUnhealthy(in Input, _ v1alpha1.VersionInfo) *verdict.Hold {
	if in.Rollout.Current() == nil {
		return nil // there is nothing yet to protect
	}
	if in.Health.Problem != nil {
		return &verdict.Hold{Reason: in.Health.Problem.Reason, Message: in.Health.Problem.Message}
	}
	if unhealthy := evidence.Unhealthy(in.Health.Checks); len(unhealthy) > 0 {
		return &verdict.Hold{
			Reason:  v1alpha1.UnhealthyHealthChecksReason,
			Message: "Unhealthy: " + evidence.NamesOf(unhealthy),
		}
	}
	return nil
}

// everyCheckMeasurable checks that every selected HealthCheck can be measured.
func everyCheckMeasurable(in Input, _ v1alpha1.VersionInfo) *verdict.Hold {
	return in.Health.Measurable(&in.Rollout.Spec)
}

// intervalOver checks that spec.releaseUpdateInterval has passed since the previous
// promotion.
func intervalOver(in Input, _ v1alpha1.VersionInfo) *verdict.Hold {
	current, interval := in.Rollout.Current(), in.Rollout.Spec.ReleaseUpdateInterval
	if current == nil || interval == nil {
		return nil
	}
	next := verdict.WholeSecond(current.PromotedTime().Add(interval.Duration))
	if !in.Now.Before(next) {
		return nil
	}
	return &verdict.Hold{
		Reason:  v1alpha1.ReleaseIntervalReason,
		Message: fmt.Sprintf("spec.releaseUpdateInterval allows the next promotion at %s", verdict.Clock(next)),
		Until:   next,
	}
}
