// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// rule is a check, with the circumstances that lift it.
type rule struct {
	require check
	unless  lift
	// past reports whether a person has overridden the check for a release; nil if nobody can.
	past func(v1alpha1.VersionInfo) bool
}

// lift is a set of circumstances that let a release go past a check.
type lift uint8

const (
	// chosen: a user pins or forces the release.
	chosen lift = 1 << iota
	// first: the environment has no release yet. Either there is nothing to protect, or
	// chooseFirstRelease decides it itself.
	first
	// bypassed: the annotation bypass-gates names the release.
	bypassed
	// unblocked: the annotation unblock-failed lets one promotion go past a failure.
	unblocked
	// promoted: the annotation promote names the release.
	promoted
)

// promotionChecks is the complete policy of promotion, in the order in which the reasons
// are reported: what holds a release, what that depends on, and what lets it go all the
// same.
func promotionChecks(in Input) []rule {
	rollout, schedules, upstreams := in.Rollout, in.Gates.Schedules, in.upstreams()
	everyCheckMeasurable, notRecalled := in.Health.Measurable(&rollout.Spec), in.holding().Recalled
	provenUpstream, promotedByAPerson := upstreams.Proven, upstreams.PromotedByAPerson
	people := in.approving()
	pastGates, pastSchedules := people.lifts(v1alpha1.OverrideGates), people.lifts(v1alpha1.OverrideSchedules)
	return []rule{
		{require: forAll(historyUpToDate(rollout, in.Targets)), unless: chosen},
		{require: leftToTheController(rollout, in.Policy), unless: chosen | first},
		{require: forAll(policyReadable(in.Policy)), unless: chosen | first},
		{require: offeredByPolicy(in.Policy), unless: chosen},
		{require: forAll(appliedComesFirst(rollout, in.Targets)), unless: chosen},
		{require: forAll(everyTagKnown(rollout, in.Policy)), unless: chosen | first},
		{require: digestKnown(in.Policy, in.Targets), unless: chosen},
		{require: notFailedBefore(rollout, in.Policy, in.Quarantines), unless: chosen | first | unblocked},
		{require: notQuarantined(rollout, in.Quarantines, in.holding()), unless: chosen | unblocked},
		{require: notRecalled},
		{require: provenUpstream, unless: chosen},
		{require: forAll(noBakeRunning(in.Now, rollout, in.Targets)), unless: chosen | first},
		{require: forAll(lastBakeNotFailed(rollout)), unless: chosen | first | unblocked},
		{require: forAll(withinRollbackLimit(rollout)), unless: chosen | first | unblocked},
		{require: forAll(everyCheckMeasurable), unless: chosen | first},
		{require: forAll(nothingUnhealthy(rollout, in.Health)), unless: chosen | first | unblocked},
		{require: forAll(everyGatePasses(in.Gates)), unless: chosen | first | bypassed, past: pastGates},
		{require: everyGateAllows(in.Gates.Gates), unless: chosen | first | bypassed, past: pastGates},
		{require: forAll(everyScheduleValid(schedules)), unless: chosen | first | bypassed, past: pastSchedules},
		{require: forAll(everyScheduleOpen(schedules)), unless: chosen | first | bypassed, past: pastSchedules},
		{require: everyApprovalGiven(people)},
		{require: forAll(intervalOver(in.Now, rollout)), unless: chosen | first},
		{require: promotedByAPerson, unless: chosen | promoted},
	}
}

// holdsPast returns what holds a release although circumstances, and what users request for
// it, lift some of the checks.
func holdsPast(rules []rule, rollout *v1alpha1.Rollout, release v1alpha1.VersionInfo, circumstances lift) []verdict.Hold {
	circumstances |= requested(rollout, release.Tag)
	var holds []verdict.Hold
	for _, rule := range rules {
		if rule.unless&circumstances != 0 || rule.past != nil && rule.past(release) {
			continue
		}
		if hold := rule.require(release); hold != nil {
			holds = append(holds, *hold)
		}
	}
	return holds
}

// overrideLifts reports whether an override lifts a hold of what is promoted, besides missing
// approvals.
func overrideLifts(in Input, o Outcome) bool {
	circumstances := requested(in.Rollout, o.Release.Tag)
	switch o.Grounds {
	case v1alpha1.GroundsPinned, v1alpha1.GroundsForced:
		circumstances |= chosen
	case v1alpha1.GroundsFirst:
		circumstances |= first
	case v1alpha1.GroundsNewest, v1alpha1.GroundsNext:
	case v1alpha1.GroundsMoved, v1alpha1.GroundsAdopted, v1alpha1.GroundsRollback:
		return false
	}
	return len(in.Gates.asking()) > 0 && slices.ContainsFunc(promotionChecks(in), func(r rule) bool {
		return r.past != nil && r.unless&circumstances == 0 && r.past(o.Release) && r.require(o.Release) != nil
	})
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
func judge(in Input, ledger []v1alpha1.VersionInfo, rules []rule) []Verdict {
	candidates := releases.CandidatesOf(in.Rollout, in.Policy, ledger)
	verdicts, withdrawn := make([]Verdict, 0, len(candidates)), in.Policy.Withdrawn()
	for _, release := range candidates {
		if !withdrawn(release.Tag) {
			verdicts = append(verdicts, Verdict{Release: release, Holds: holdsPast(rules, in.Rollout, release, 0)})
		}
	}
	considerOnlyBypassed(in.Rollout, verdicts)
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
		considerOnlyNext(in.Rollout, in.upstreams(), verdicts)
	}
	return verdicts
}

// considerOnlyBypassed holds the other candidates while a user lets one go past the
// gates.
func considerOnlyBypassed(rollout *v1alpha1.Rollout, verdicts []Verdict) {
	only := Bypassed(rollout, verdicts)
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
func considerOnlyNext(rollout *v1alpha1.Rollout, upstreams upstream.Asked, verdicts []Verdict) {
	if rollout.Spec.ReleaseStrategy != v1alpha1.ReleaseNext {
		return
	}
	next := len(verdicts) - 1
	for next >= 0 && (upstreams.IsLeftBehind(verdicts[next].Release) || verdicts[next].HeldBy(v1alpha1.SameVersionReason)) {
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

// historyUpToDate checks that no newer promotion than those of the history has written the
// targets.
func historyUpToDate(rollout *v1alpha1.Rollout, targets content.Targets) *verdict.Hold {
	if !targets.Outdate(rollout.Status.History) {
		return nil
	}
	return &verdict.Hold{Reason: v1alpha1.HistoryOutdatedReason, Message: "the history is older than the targets, and nothing is promoted automatically"}
}

// leftToTheController checks that no user has chosen another version.
func leftToTheController(rollout *v1alpha1.Rollout, policy releases.Policy) check {
	wanted, hold := policy.Chosen(rollout), impossible(rollout, policy, nil).Hold()
	switch {
	case wanted == "":
		return forAll(nil)
	case rollout.Pinned() == "":
		hold = &verdict.Hold{
			Reason:  v1alpha1.ForcedReason,
			Message: fmt.Sprintf("%s asks for %s; remove it to resume automatic promotions", v1alpha1.ForceDeployAnnotation, verdict.Quote(wanted)),
		}
	case hold == nil:
		hold = &verdict.Hold{
			Reason:  v1alpha1.PinnedReason,
			Message: fmt.Sprintf("spec.wantedVersion pins %s; remove it to resume automatic promotions", wanted),
		}
	}
	return func(release v1alpha1.VersionInfo) *verdict.Hold {
		if releases.IsName(wanted) && releases.Name(wanted).Is(release) {
			return nil
		}
		return hold
	}
}

// impossible explains why the release that a user requests cannot be promoted; nil if it
// can.
func impossible(rollout *v1alpha1.Rollout, policy releases.Policy, ledger []v1alpha1.VersionInfo) *verdict.Problem {
	pinned, forced := rollout.Pinned(), policy.Forced(rollout)
	switch {
	case pinned != "" && !releases.IsName(pinned):
		return invalidName(pinned)
	case pinned == "" && forced != "" && !(releases.IsTag(forced) && releases.Contains(ledger, forced)):
		return &verdict.Problem{
			Reason: v1alpha1.UnknownReleaseReason,
			Message: fmt.Sprintf("%s names %s, which is not a known release: correct or remove it, or set spec.wantedVersion",
				v1alpha1.ForceDeployAnnotation, verdict.Quote(forced)),
		}
	}
	return nil
}

func invalidName(pinned string) *verdict.Problem {
	expected := "cannot be a tag in an OCI registry"
	if strings.Contains(pinned, "@") {
		expected = "is neither a tag nor a tag with its digest, <tag>@sha256:<64 hexadecimal digits>"
	}
	return &verdict.Problem{
		Reason:  v1alpha1.InvalidWantedVersionReason,
		Message: "spec.wantedVersion " + verdict.Quote(pinned) + " " + expected + ": correct or remove it",
	}
}

// policyReadable checks that the ImagePolicy could be read and used.
func policyReadable(policy releases.Policy) *verdict.Hold {
	if !policy.Blocking {
		return nil
	}
	return policy.Problem.Hold()
}

// offeredByPolicy checks that the release is not newer than the one the policy names. A
// release that was withdrawn from the registry must not be promoted. Of releases that are
// equal for the policy, it offers all.
func offeredByPolicy(policy releases.Policy) check {
	latest, hold := policy.Latest, &verdict.Hold{Reason: v1alpha1.NotOfferedReason}
	if latest == nil {
		hold.Message = fmt.Sprintf("ImagePolicy %s names no release at present", policy.Name)
		return forAll(hold)
	}
	hold.Message = fmt.Sprintf("ImagePolicy %s now names %s, which is older", policy.Name, latest.Tag)
	return func(release v1alpha1.VersionInfo) *verdict.Hold {
		if result, ok := policy.Order.Precedence(release.Tag, latest.Tag); !ok || result <= 0 {
			return nil
		}
		return hold
	}
}

// appliedComesFirst holds every release if spec.firstRelease is Applied and the history
// is empty: the history must begin with the version that already runs.
func appliedComesFirst(rollout *v1alpha1.Rollout, targets content.Targets) *verdict.Hold {
	if rollout.Current() != nil || rollout.Spec.FirstRelease != v1alpha1.FirstReleaseApplied {
		return nil
	}
	return cmp.Or(targets.UnknownVersion().Hold(), &verdict.Hold{
		Reason:  v1alpha1.FirstReleaseNotAppliedReason,
		Message: "spec.firstRelease is Applied: the history begins with what the targets carry, once Flux has applied it",
	})
}

// everyTagKnown checks that all tags of the registry are known, if no release may be
// skipped.
func everyTagKnown(rollout *v1alpha1.Rollout, policy releases.Policy) *verdict.Hold {
	oneByOne := rollout.Spec.ReleaseStrategy == v1alpha1.ReleaseNext
	if !oneByOne || rollout.Current() == nil || policy.Order.Kind() != releases.BySemver || policy.Partial == "" {
		return nil
	}
	return &verdict.Hold{
		Reason:  v1alpha1.TagsUnknownReason,
		Message: "the next release is not known, because not all tags of the registry are known: " + policy.Partial,
	}
}

// digestKnown checks that the digest of the release is known, if a target gets it.
func digestKnown(policy releases.Policy, targets content.Targets) check {
	return func(release v1alpha1.VersionInfo) *verdict.Hold {
		if targets.Pinned == content.NonePinned || releases.IsDigest(releases.OrEmpty(release.Digest)) {
			return nil
		}
		return &verdict.Hold{
			Reason: v1alpha1.DigestUnknownReason,
			Message: fmt.Sprintf("the digest of %s is not known: set spec.digestReflectionPolicy of ImagePolicy %s to Always, or let the controller read the registry",
				release.Tag, policy.Name),
		}
	}
}

// notFailedBefore checks that the newest promotion of this release did not fail here,
// under whichever name. If the Rollout goes back by itself, other content under the same
// tag is another release.
func notFailedBefore(rollout *v1alpha1.Rollout, policy releases.Policy, quarantines quarantined.Quarantines) check {
	return func(release v1alpha1.VersionInfo) *verdict.Hold {
		entry := newestPromotion(rollout, policy, release)
		if entry.State() != v1alpha1.BakeFailed || quarantines.Lift(entry.Quarantine, failureOf(rollout, entry)) || rollout.Spec.RollsBack() && releases.Differs(entry.Version.Digest, release.Digest) {
			return nil
		}
		return &verdict.Hold{
			Reason:  v1alpha1.FailedBeforeReason,
			Message: fmt.Sprintf("%s failed here before; pin it, or annotate the Rollout with unblock-failed, to try it again", entry.Version.Tag),
		}
	}
}

// newestPromotion returns the newest entry of a release; nil if there is none. A promotion
// of another image was one of another release.
func newestPromotion(rollout *v1alpha1.Rollout, policy releases.Policy, release v1alpha1.VersionInfo) *v1alpha1.DeploymentHistoryEntry {
	for i := range rollout.Status.History {
		entry := &rollout.Status.History[i]
		pushedAgain := policy.ByDigest && releases.Differs(entry.Version.Digest, release.Digest)
		same := entry.Version.Tag == release.Tag && !pushedAgain ||
			releases.IsSame(entry.Version.Digest, release.Digest) && policy.Order.Relation(entry.Version, release) == releases.SameRelease
		if same && !policy.IsOfAnother(entry) {
			return entry
		}
	}
	return nil
}

// noBakeRunning checks that the previous promotion has its outcome. If nothing protects a
// promotion and releases may be skipped, there is nothing to wait for.
func noBakeRunning(now time.Time, rollout *v1alpha1.Rollout, targets content.Targets) *verdict.Hold {
	current := rollout.Current()
	skippable := !Protected(&rollout.Spec) && !current.IsRollback() && rollout.Spec.ReleaseStrategy != v1alpha1.ReleaseNext
	if !current.State().Running() || skippable || rollout.UnblocksFailed() && isOverdue(now, rollout, targets) {
		return nil
	}
	return &verdict.Hold{
		Reason:  v1alpha1.BakeRunningReason,
		Message: fmt.Sprintf("%s is still %s", current.Version.Tag, current.State()),
	}
}

// lastBakeNotFailed checks that the current release has not failed.
func lastBakeNotFailed(rollout *v1alpha1.Rollout) *verdict.Hold {
	current := rollout.Current()
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
func nothingUnhealthy(rollout *v1alpha1.Rollout, health evidence.Health) *verdict.Hold {
	switch unhealthy := evidence.Unhealthy(health.Checks); {
	case rollout.Current() == nil: // there is nothing yet to protect
	case health.Problem != nil:
		return health.Problem.Hold()
	case len(unhealthy) > 0:
		return &verdict.Hold{Reason: v1alpha1.UnhealthyHealthChecksReason, Message: "Unhealthy: " + evidence.NamesOf(unhealthy)}
	}
	return nil
}

// intervalOver checks that spec.releaseUpdateInterval has passed since the previous
// promotion.
func intervalOver(now time.Time, rollout *v1alpha1.Rollout) *verdict.Hold {
	current, interval := rollout.Current(), rollout.Spec.ReleaseUpdateInterval
	if current == nil || interval == nil {
		return nil
	}
	next := verdict.WholeSecond(current.PromotedTime().Add(interval.Duration))
	if !now.Before(next) {
		return nil
	}
	return &verdict.Hold{
		Reason:  v1alpha1.ReleaseIntervalReason,
		Message: fmt.Sprintf("spec.releaseUpdateInterval allows the next promotion at %s", verdict.Clock(next)),
		Until:   next,
	}
}
