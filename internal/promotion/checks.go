// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Hold is one reason why a candidate is not promoted now.
type Hold struct {
	// Reason is one of the v1alpha1 reasons.
	Reason string
	// Message says what holds the candidate, and what would let it go.
	Message string
	// Until is when time alone ends the hold; zero is never.
	Until time.Time
}

// Verdict is what the checks say of one candidate.
type Verdict struct {
	// Release that was judged.
	Release v1alpha1.VersionInfo
	// Holds are the reasons against promoting it now, the most telling first.
	Holds []Hold
}

// Eligible reports whether nothing holds the candidate.
func (v Verdict) Eligible() bool { return len(v.Holds) == 0 }

// HeldBy reports whether one of the reasons holds the candidate.
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

// check is a proposition that must hold for a release to be promoted without a
// person asking for it; nil means that it holds.
type check func(Input, v1alpha1.VersionInfo) *Hold

// rule is a check, whether it holds the first release of an environment too, and whether
// it says the same of every release, so that it is asked once: there may be thousands.
type rule struct {
	holds check
	first bool
	same  bool
}

func always(c check) rule { return rule{holds: c, first: true} }

// onceSomethingRuns is for what an environment without any release has no need of, or
// chooseFirst sees to by itself.
func onceSomethingRuns(c check) rule { return rule{holds: c} }

// forAll is for a check that does not look at the release.
func (r rule) forAll() rule {
	r.same = true
	return r
}

// promotionChecks is the whole policy of automatic promotion, in the order in
// which the reasons are told.
var promotionChecks = []rule{
	onceSomethingRuns(leftToTheController),
	onceSomethingRuns(policyReadable).forAll(),
	always(offeredByPolicy),
	always(appliedComesFirst),
	onceSomethingRuns(everyTagKnown).forAll(),
	onceSomethingRuns(unlessUnblocked(notFailedBefore)),
	onceSomethingRuns(noBakeRunning).forAll(),
	onceSomethingRuns(unlessUnblocked(lastBakeNotFailed)).forAll(),
	onceSomethingRuns(unlessUnblocked(nothingUnhealthy)).forAll(),
	onceSomethingRuns(unlessBypassed(everyGatePasses)),
	onceSomethingRuns(unlessBypassed(everyGateAllows)),
	onceSomethingRuns(unlessBypassed(everyScheduleValid)),
	onceSomethingRuns(unlessBypassed(everyScheduleOpen)),
	onceSomethingRuns(intervalOver).forAll(),
}

// heldAsFirst reports whether a release cannot be the first one either.
func heldAsFirst(in Input, release v1alpha1.VersionInfo) bool {
	return slices.ContainsFunc(promotionChecks, func(r rule) bool { return r.first && r.holds(in, release) != nil })
}

// unlessUnblocked lifts a check while a person lets the next promotion past a
// failure.
func unlessUnblocked(c check) check {
	return func(in Input, release v1alpha1.VersionInfo) *Hold {
		if in.Rollout.UnblocksFailed() {
			return nil
		}
		return c(in, release)
	}
}

// unlessBypassed lifts a check for the release that a person lets past gates.
func unlessBypassed(c check) check {
	return func(in Input, release v1alpha1.VersionInfo) *Hold {
		if in.Rollout.Annotations[v1alpha1.BypassGatesAnnotation] == release.Tag {
			return nil
		}
		return c(in, release)
	}
}

// judge gives a verdict for every candidate, newest first. A release that was
// withdrawn from the registry is none: Flux could not pull it.
func judge(in Input, ledger []v1alpha1.VersionInfo) []Verdict {
	candidates := candidatesOf(in, ledger)
	verdicts, withdrawn, said := make([]Verdict, 0, len(candidates)), in.Policy.withdrawn(), sameForAll(in)
	for _, release := range candidates {
		if withdrawn(release.Tag) {
			continue
		}
		verdict := Verdict{Release: release}
		for i, rule := range promotionChecks {
			hold := said[i]
			if !rule.same {
				hold = rule.holds(in, release)
			}
			if hold != nil {
				verdict.Holds = append(verdict.Holds, *hold)
			}
		}
		verdicts = append(verdicts, verdict)
	}
	considerOnlyBypassed(in, verdicts)
	if in.Rollout.Current() == nil {
		return verdicts // where nothing runs yet no release can be skipped, and none is older
	}
	if positionOf(ledger, in.Rollout.Status.History, in.Policy.Order) == "" {
		considerWithoutPosition(in, verdicts)
	} else {
		considerOnlyNext(in, verdicts)
	}
	return verdicts
}

// sameForAll are the holds of every candidate, each at the place of its rule.
func sameForAll(in Input) []*Hold {
	said := make([]*Hold, len(promotionChecks))
	for i, rule := range promotionChecks {
		if rule.same {
			said[i] = rule.holds(in, v1alpha1.VersionInfo{})
		}
	}
	return said
}

// considerOnlyBypassed holds the other candidates while a person lets one past
// the gates.
func considerOnlyBypassed(in Input, verdicts []Verdict) {
	only := Bypassed(in, verdicts)
	if only == "" {
		return
	}
	hold := Hold{Reason: v1alpha1.GatesBypassedReason, Message: v1alpha1.BypassGatesAnnotation + " asks for " + only}
	for i := range verdicts {
		if verdicts[i].Release.Tag != only {
			verdicts[i].Holds = append(verdicts[i].Holds, hold)
		}
	}
}

// considerWithoutPosition holds what may be older than the current release, where
// nothing in the history can be ranked: then only the newest of all is no step back,
// and which release is the next nobody knows.
func considerWithoutPosition(in Input, verdicts []Verdict) {
	if len(verdicts) == 0 {
		return
	}
	unranked := fmt.Sprintf("ImagePolicy %s cannot rank any release of the history", in.Policy.Name)
	hold := Hold{
		Reason:  v1alpha1.PositionUnknownReason,
		Message: fmt.Sprintf("%s: only %s, the newest, goes out by itself; pin another one to deploy it", unranked, verdicts[0].Release.Tag),
	}
	held := verdicts[1:]
	if in.Rollout.Spec.ReleaseStrategy == v1alpha1.ReleaseNext {
		hold.Message, held = unranked+", so the next one is not known: pin the release to go on from", verdicts
	}
	for i := range held {
		held[i].Holds = append(held[i].Holds, hold)
	}
}

// considerOnlyNext holds all but the oldest candidate if none may be skipped.
func considerOnlyNext(in Input, verdicts []Verdict) {
	if in.Rollout.Spec.ReleaseStrategy != v1alpha1.ReleaseNext || len(verdicts) == 0 {
		return
	}
	newer, next := verdicts[:len(verdicts)-1], verdicts[len(verdicts)-1].Release.Tag
	for i := range newer {
		newer[i].Holds = append(newer[i].Holds, Hold{
			Reason: v1alpha1.NotNextReason, Message: "spec.releaseStrategy takes " + next + " first",
		})
	}
}

// Contenders are the candidates that are considered at present: all, unless
// a person lets one past the gates, or the strategy takes the next one only.
// Where these two name different ones no candidate can go, and all are returned.
func Contenders(verdicts []Verdict) []Verdict {
	considered := slices.DeleteFunc(slices.Clone(verdicts), func(v Verdict) bool {
		return v.HeldBy(v1alpha1.GatesBypassedReason, v1alpha1.NotNextReason, v1alpha1.PositionUnknownReason)
	})
	if len(considered) == 0 {
		return verdicts
	}
	return considered
}

// leftToTheController: no person chooses the version.
func leftToTheController(in Input, release v1alpha1.VersionInfo) *Hold {
	wanted := in.Rollout.ChosenByHand()
	switch {
	case wanted == "" || wanted == release.Tag:
		return nil
	case in.Rollout.Pinned() == "":
		return &Hold{
			Reason:  v1alpha1.ForcedReason,
			Message: fmt.Sprintf("%s asks for %s; remove it to promote by itself again", v1alpha1.ForceDeployAnnotation, quote(wanted)),
		}
	case !IsTag(wanted):
		problem := impossible(in.Rollout, nil)
		return &Hold{Reason: problem.Reason, Message: problem.Message}
	}
	return &Hold{
		Reason:  v1alpha1.PinnedReason,
		Message: fmt.Sprintf("spec.wantedVersion pins %s; remove it to promote by itself again", wanted),
	}
}

// policyReadable: the ImagePolicy could be read and used.
func policyReadable(in Input, _ v1alpha1.VersionInfo) *Hold {
	if in.Policy.Problem == nil || !in.Policy.Blocking {
		return nil
	}
	return &Hold{Reason: in.Policy.Problem.Reason, Message: in.Policy.Problem.Message}
}

// offeredByPolicy: the release is not newer than what the policy names. A
// release that was withdrawn from the registry must not go out.
func offeredByPolicy(in Input, release v1alpha1.VersionInfo) *Hold {
	if in.Policy.Latest == nil {
		return &Hold{
			Reason:  v1alpha1.NotOfferedReason,
			Message: fmt.Sprintf("ImagePolicy %s names no release at present", in.Policy.Name),
		}
	}
	if result, ok := in.Policy.Order.Compare(release.Tag, in.Policy.Latest.Tag); !ok || result <= 0 {
		return nil
	}
	return &Hold{
		Reason:  v1alpha1.NotOfferedReason,
		Message: fmt.Sprintf("ImagePolicy %s now names %s, which is older", in.Policy.Name, in.Policy.Latest.Tag),
	}
}

// everyTagKnown: where no release may be skipped, none that the registry has is
// unknown.
func everyTagKnown(in Input, _ v1alpha1.VersionInfo) *Hold {
	oneByOne := in.Rollout.Spec.ReleaseStrategy == v1alpha1.ReleaseNext
	if !oneByOne || in.Rollout.Current() == nil || in.Policy.Order.Kind() != BySemver || in.Policy.Partial == "" {
		return nil
	}
	return &Hold{
		Reason:  v1alpha1.TagsUnknownReason,
		Message: "the next release is not known, for not all tags of the registry are: " + in.Policy.Partial,
	}
}

// notFailedBefore: the newest promotion of this release did not fail here.
func notFailedBefore(in Input, release v1alpha1.VersionInfo) *Hold {
	for i := range in.Rollout.Status.History {
		entry := &in.Rollout.Status.History[i]
		if entry.Version.Tag != release.Tag {
			continue
		}
		if entry.State() != v1alpha1.BakeFailed {
			return nil
		}
		return &Hold{
			Reason:  v1alpha1.FailedBeforeReason,
			Message: fmt.Sprintf("%s failed here before; pin it, or annotate the Rollout with unblock-failed, to try it again", release.Tag),
		}
	}
	return nil
}

// noBakeRunning: the promotion before this one has its outcome. Where nothing
// protects a promotion, and releases may be skipped, there is nothing to wait
// for.
func noBakeRunning(in Input, _ v1alpha1.VersionInfo) *Hold {
	current := in.Rollout.Current()
	skippable := !Protected(&in.Rollout.Spec) && in.Rollout.Spec.ReleaseStrategy != v1alpha1.ReleaseNext
	if !current.State().Running() || skippable {
		return nil
	}
	return &Hold{
		Reason:  v1alpha1.BakeRunningReason,
		Message: fmt.Sprintf("%s is still %s", current.Version.Tag, current.State()),
	}
}

// lastBakeNotFailed: the current release is not a failed one.
func lastBakeNotFailed(in Input, _ v1alpha1.VersionInfo) *Hold {
	current := in.Rollout.Current()
	if current.State() != v1alpha1.BakeFailed {
		return nil
	}
	return &Hold{
		Reason: v1alpha1.PreviousBakeFailedReason,
		Message: fmt.Sprintf("the bake of %s failed; to go on, pin a version, or annotate the Rollout with retry or unblock-failed",
			current.Version.Tag),
	}
}

// nothingUnhealthy: no selected HealthCheck says Unhealthy, and all could be
// read.
func nothingUnhealthy(in Input, _ v1alpha1.VersionInfo) *Hold {
	if in.Rollout.Current() == nil {
		return nil // there is nothing yet whose health could be protected
	}
	if in.Health.Problem != nil {
		return &Hold{Reason: in.Health.Problem.Reason, Message: in.Health.Problem.Message}
	}
	if sick := Unhealthy(in.Health.Checks); len(sick) > 0 {
		return &Hold{
			Reason:  v1alpha1.UnhealthyHealthChecksReason,
			Message: "Unhealthy: " + names(sick),
		}
	}
	return nil
}

// intervalOver: spec.releaseUpdateInterval has passed since the promotion
// before.
func intervalOver(in Input, _ v1alpha1.VersionInfo) *Hold {
	current, interval := in.Rollout.Current(), in.Rollout.Spec.ReleaseUpdateInterval
	if current == nil || interval == nil {
		return nil
	}
	next := wholeSecond(current.Timestamp.Add(interval.Duration))
	if !in.Now.Before(next) {
		return nil
	}
	return &Hold{
		Reason:  v1alpha1.ReleaseIntervalReason,
		Message: fmt.Sprintf("spec.releaseUpdateInterval allows the next promotion at %s", clock(next)),
		Until:   next,
	}
}

// clock shows a moment in a message.
func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }
