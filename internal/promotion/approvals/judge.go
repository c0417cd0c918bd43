// SPDX-License-Identifier: Apache-2.0

package approvals

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Gate asks for approvals.
type Gate struct {
	// Name is its kind and name.
	Name string
	// Asks is what it asks for.
	Asks v1alpha1.Approvals
}

// asksAbout reports whether the gate asks about promotions of this kind.
func (g Gate) asksAbout(c Case) bool {
	kind := v1alpha1.ApproveAutomatic
	if c.Manual {
		kind = v1alpha1.ApproveManual
	}
	return len(g.Asks.AppliesTo) == 0 || slices.Contains(g.Asks.AppliesTo, kind)
}

// Answer is what gates that ask for approvals say of a promotion.
type Answer struct {
	// Asked are the names of the gates that ask; none if it needs no approvals.
	Asked []string
	// Holds are why it may not go; none if it may.
	Holds []verdict.Hold
	// By are the decisions that let it go: each lets one promotion go.
	By []v1alpha1.RolloutApproval
	// Overridden is true if an override lets it go.
	Overridden bool
	// Lifts are the other holds that an override lifts.
	Lifts []v1alpha1.OverriddenHold
	// Lifting is that override. It is used if it lifts any.
	Lifting *v1alpha1.RolloutApproval
	// Changes is when time alone first changes the answer; zero means never.
	Changes time.Time
}

// Judge answers whether a promotion has the approvals that gates ask for.
func (a Approvals) Judge(c Case, gates []Gate) Answer {
	gates = slices.DeleteFunc(slices.Clone(gates), func(g Gate) bool { return !g.asksAbout(c) })
	var answer Answer
	for _, g := range gates {
		answer.Asked = append(answer.Asked, g.Name)
	}
	if len(gates) == 0 {
		return answer
	}
	for _, problem := range []*verdict.Problem{a.Problem, a.Identity.Problem, c.forgotten()} {
		if problem != nil {
			answer.Holds = append(answer.Holds, *problem.Hold())
		}
	}
	if len(answer.Holds) == 0 {
		answer.judge(c, gates, a)
	}
	return answer
}

// forgotten is why no decision counts; nil if the history says which were used.
func (c Case) forgotten() *verdict.Problem {
	if !c.Forgotten {
		return nil
	}
	return &verdict.Problem{Reason: v1alpha1.ApprovalRequiredReason, Message: "no approval counts, because the history does not say which were used: " +
		"adopt what runs, with the same version in all targets"}
}

// judge asks each gate. An override lets the promotion past a gate that accepts its author. It
// lifts other holds if all accept them.
func (a *Answer) judge(c Case, gates []Gate, all Approvals) {
	given, unchecked := all.about(c)
	var overrides []*v1alpha1.RolloutApproval
	for _, g := range gates {
		v, override := g.count(c, given), overrideOf(c, given, g)
		v.leaveOutUnchecked(unchecked, all.Identity.Since)
		a.Changes = verdict.Earlier(verdict.Earlier(a.Changes, v.changes), endsAt(override))
		switch hold := v.hold(c); {
		case hold == nil:
			a.use(v.approve...)
		case override != nil:
			overrides = append(overrides, override)
		default:
			a.Holds = append(a.Holds, *hold)
		}
	}
	if a.Lifting = overrideOf(c, given, gates...); a.Lifting != nil {
		a.Lifts = a.Lifting.Spec.AlsoLifts
	}
	a.override(overrides...)
}

// WithLifting returns the answer if an override lifts another hold, which uses it too.
func (a Answer) WithLifting() Answer {
	a.override(a.Lifting)
	return a
}

// override notes overrides that let the promotion go, before all else: they are never cut.
func (a *Answer) override(overrides ...*v1alpha1.RolloutApproval) {
	people := a.By
	a.By, a.Overridden = nil, a.Overridden || len(overrides) > 0
	a.use(overrides...)
	for i := range people {
		a.use(&people[i])
	}
}

// use notes decisions that let the promotion go, each once.
func (a *Answer) use(given ...*v1alpha1.RolloutApproval) {
	for _, g := range given {
		if !slices.ContainsFunc(a.By, func(by v1alpha1.RolloutApproval) bool { return by.UID == g.UID }) {
			a.By = append(a.By, *g)
		}
	}
}

// overrideOf returns the newest override of the release that has not ended, and whose author
// the gates accept; nil if there is none.
func overrideOf(c Case, given []v1alpha1.RolloutApproval, gates ...Gate) *v1alpha1.RolloutApproval {
	for i := range given {
		override := &given[i]
		if override.Spec.Decision != v1alpha1.DecisionOverride || !isAbout(override, c.Release) || !c.Now.Before(endsAt(override)) {
			continue
		}
		if !slices.ContainsFunc(gates, func(g Gate) bool { return !g.accepts(override.Spec.By.Username) }) {
			return override
		}
	}
	return nil
}

// endsAt returns when an override ends; zero if there is none.
func endsAt(override *v1alpha1.RolloutApproval) time.Time {
	switch {
	case override == nil:
		return time.Time{}
	case override.Spec.For == nil:
		return override.CreationTimestamp.Time
	}
	return override.CreationTimestamp.Add(override.Spec.For.Duration)
}

// isAbout reports whether a decision is about this content. One without a digest is about each
// content of its version.
func isAbout(given *v1alpha1.RolloutApproval, release v1alpha1.VersionInfo) bool {
	return given.Spec.Digest == "" || release.Digest != nil && given.Spec.Digest == *release.Digest
}

// vote is what the people whom a gate accepts say of a release.
type vote struct {
	gate            Gate
	needed          int
	approve, reject []*v1alpha1.RolloutApproval
	// apart are why other decisions do not count.
	apart []string
	// changes is when the first approval expires; zero means never.
	changes time.Time
}

// count counts the newest decision of each user.
func (g Gate) count(c Case, newestFirst []v1alpha1.RolloutApproval) vote {
	v, heard := vote{gate: g, needed: g.Asks.GetCount()}, map[string]bool{}
	if g.forbidsSelfApproval(c) && c.Requester == "" {
		v.needed++ // one of them may be the one who asked for it
	}
	for i := range newestFirst {
		given := &newestFirst[i]
		name := given.Spec.By.Username
		if heard[name] || !g.hears(given) {
			continue
		}
		if !isAbout(given, c.Release) {
			v.leaveOut(name, "is for another digest")
			continue
		}
		heard[name] = true
		switch why := g.leavesOut(c, given); {
		case why != "":
			v.leaveOut(name, why)
		case given.Spec.Decision == v1alpha1.DecisionReject:
			v.reject = append(v.reject, given)
		default:
			v.hear(c.Now, given)
		}
	}
	return v
}

// leaveOutUnchecked says which decisions do not count because nobody has checked their names.
func (v *vote) leaveOutUnchecked(unchecked []v1alpha1.RolloutApproval, since time.Time) {
	for i := range unchecked {
		if v.gate.hears(&unchecked[i]) {
			v.leaveOut(unchecked[i].Spec.By.Username, "does not count: names are checked since "+since.UTC().Format(time.RFC3339))
		}
	}
}

func (g Gate) forbidsSelfApproval(c Case) bool {
	return c.Requested && g.Asks.SelfApproval != v1alpha1.SelfApprovalAllow
}

// leavesOut returns why the gate does not count a user's decision; empty if it does.
func (g Gate) leavesOut(c Case, given *v1alpha1.RolloutApproval) string {
	name := given.Spec.By.Username
	switch {
	case !g.accepts(name):
		return "does not count: the gate does not list this ServiceAccount"
	case g.forbidsSelfApproval(c) && name == c.Requester:
		return "does not count: " + truncate.Line(name, verdict.LongestName) + " asked for this release"
	}
	return ""
}

// hears reports whether a decision is one that the gate asks for.
func (g Gate) hears(given *v1alpha1.RolloutApproval) bool {
	known := given.Spec.Decision == v1alpha1.DecisionApprove || given.Spec.Decision == v1alpha1.DecisionReject
	return known && (g.Asks.Role == "" || given.Spec.Role == g.Asks.Role)
}

func (v *vote) leaveOut(name, why string) {
	if text := truncate.Line(name, verdict.LongestName) + "'s " + why; !slices.Contains(v.apart, text) {
		v.apart = append(v.apart, text)
	}
}

// hear counts an approval until it expires.
func (v *vote) hear(now time.Time, given *v1alpha1.RolloutApproval) {
	expires := given.CreationTimestamp.Add(v.gate.Asks.GetValidFor())
	if !now.Before(expires) {
		v.leaveOut(given.Spec.By.Username, "has expired")
		return
	}
	v.approve, v.changes = append(v.approve, given), verdict.Earlier(v.changes, expires)
}

// hold returns why the gate does not let the release go; nil if it does.
func (v vote) hold(c Case) *verdict.Hold {
	switch {
	case c.Release.Digest == nil:
		return &verdict.Hold{Reason: v1alpha1.DigestUnknownReason, OfGates: true, Message: fmt.Sprintf(
			"%s asks for approvals, and the digest of %s is not known: nobody can say what they approve", v.gate.Name, c.Release.Tag)}
	case len(v.reject) > 0 && v.gate.Asks.Rejections != v1alpha1.RejectionsIgnore:
		return &verdict.Hold{Reason: v1alpha1.ApprovalRejectedReason, Message: v.gate.Name + ": rejected by " + truncate.List(reasonsOf(v.reject)), Changes: v.changes}
	case len(v.approve) < v.needed:
		return &verdict.Hold{Reason: v1alpha1.ApprovalRequiredReason, Message: v.missing(), Changes: v.changes}
	}
	return nil
}

// missing says who has approved, and whose decision does not count.
func (v vote) missing() string {
	asked := "approvals"
	if v.gate.Asks.Role != "" {
		asked += " in the role " + truncate.Line(v.gate.Asks.Role, verdict.LongestName)
	}
	text := fmt.Sprintf("%s: %d of %d %s", v.gate.Name, len(v.approve), v.needed, asked)
	if len(v.approve) > 0 {
		text += " (" + truncate.List(people(v.approve)) + ")"
	}
	return truncate.Join(append([]string{text}, v.apart...), "; ")
}

func people(given []*v1alpha1.RolloutApproval) []string {
	var names []string
	for _, g := range given {
		names = append(names, truncate.Line(g.Spec.By.Username, verdict.LongestName))
	}
	return names
}

// reasonsOf returns who rejects a release, and why.
func reasonsOf(rejections []*v1alpha1.RolloutApproval) []string {
	names := people(rejections)
	for i, g := range rejections {
		if g.Spec.Reason != "" {
			names[i] += fmt.Sprintf(" (%s)", truncate.Line(g.Spec.Reason, verdict.LongestComplaint))
		}
	}
	return names
}
