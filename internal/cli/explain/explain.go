// SPDX-License-Identifier: Apache-2.0

// Package explain says why a release is not promoted, and which requests would let it go.
// Package promotion decides; this package only asks it, with and without each request.
//
// It is pure: it reads nothing and sends nothing.
package explain

import (
	"slices"
	"strings"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// User is who reads an explanation.
type User struct {
	// Name is how the API server knows the user; empty if that is not known.
	Name string
	// Possible reports whether the user can make a request; nil takes all as possible.
	Possible func(request.Request) bool
}

func (u User) can(r request.Request) bool { return u.Possible == nil || u.Possible(r) }

// Remedy is a request that changes what holds a candidate.
type Remedy struct {
	Request request.Request
	// Promotes is true if the candidate is promoted at once.
	Promotes bool
	// Left are the holds that remain, if it is not.
	Left []verdict.Hold
}

// Remedies returns requests that change what holds a candidate, the weakest first. It
// ends with the first one that lets the candidate go and is about this Rollout alone: to
// lift a quarantine may let others go as well. Every remedy was tried: the engine
// has decided on the input as it is after the request.
func Remedies(in promotion.Input, held promotion.Verdict, user User) []Remedy {
	var all []Remedy
	for _, r := range requests(in, held, user) {
		if !user.can(r) {
			continue
		}
		remedy := try(in, r, held.Release.Tag)
		if remedy.Promotes || helps(held.Holds, remedy.Left, r.Decision != nil) {
			all = append(all, remedy)
		}
		if remedy.Promotes && r.Quarantine == "" {
			break
		}
	}
	return all
}

// requests returns what a user could ask for, from what changes least to what changes
// most. Which of it helps is for the engine to say.
func requests(in promotion.Input, held promotion.Verdict, user User) []request.Request {
	return slices.Concat(decisions(in, held, user, v1alpha1.DecisionApprove), changes(in, held), decisions(in, held, user, v1alpha1.DecisionOverride))
}

// changes returns the requests that change an object.
func changes(in promotion.Input, held promotion.Verdict) []request.Request {
	tag, name := held.Release.Tag, in.Policy.FullName(held.Release)
	all := ofGates(in.Gates, name)
	for _, left := range []string{"force", "bypass"} {
		if r, ok := request.Withdraw(left); ok {
			all = append(all, r)
		}
	}
	past := request.PromotePastGates(tag)
	switch awaits := held.HeldBy(environmentsv1.AwaitingPromotionReason); {
	case held.HeldByUpstreams():
		past = request.PromotePastUpstreams(tag, "...")
	case awaits:
		all, past = append(all, request.PromoteProven(tag)), request.PromotePastUpstreams(tag, "...")
	}
	if held.HeldBy(v1alpha1.QuarantinedReason) || held.HeldBy(v1alpha1.QuarantineListFailedReason) {
		return slices.Concat(all, lifts(in, held.Release), []request.Request{request.Unpin(), past, request.Pin(name)})
	}
	return append(all, request.Unpin(), request.Unblock(), past, request.Promote(tag), request.Pin(name))
}

// ofGates returns the requests that let a release pass the gates, and those that end a freeze:
// it holds everything, so no release is approved there.
func ofGates(gates promotion.Gates, name string) []request.Request {
	var all []request.Request
	for i := range gates.Gates {
		gate := &gates.Gates[i]
		if gate.Labels[v1alpha1.ManagedByLabel] == request.FreezeManager {
			all = append(all, request.Unfreeze(gate.Name))
			continue
		}
		all = append(all, request.Approve(gate.Name, name))
	}
	for _, window := range gates.Schedules {
		if name, own := strings.CutPrefix(window.Schedule, "RolloutSchedule "); own && window.ManagedBy == request.FreezeManager {
			all = append(all, request.UnfreezeAll(name))
		}
	}
	return all
}

// decisions returns what the user could say of a release that waits for approvals.
func decisions(in promotion.Input, held promotion.Verdict, user User, decision v1alpha1.Decision) []request.Request {
	switch {
	case !slices.ContainsFunc(reasons(held.Holds), isOfPeople):
		return nil
	case decision == v1alpha1.DecisionOverride:
		return []request.Request{request.OverrideAs(user.Name, held.Release)}
	}
	var all []request.Request
	roles := request.RolesAsked(in.Gates)
	for _, role := range roles {
		all = append(all, request.ApproveAs(user.Name, role, held.Release, len(roles) > 1))
	}
	return all
}

// OfState returns the requests that help a Rollout in a state, the weakest first. Each was
// tried. Those that help a candidate are its [Remedies].
func OfState(in promotion.Input, state State, user User) []Command {
	var all []Command
	add := func(r request.Request, helps func(promotion.Decision) bool) {
		if d := promotion.Decide(r.Apply(in)); helps(d) && user.can(r) {
			all = append(all, Command{Verb: r.Verb, Args: r.Args, Promotes: d.Action.Promotes()})
		}
	}
	switch good := promotion.LastGood(in); {
	case state.Kind == StateSuspended:
		add(request.Resume(), func(promotion.Decision) bool { return true })
	case state.Kind != StateFailed:
	default:
		add(request.Retry(), func(d promotion.Decision) bool { return d.Action == promotion.Retry })
		add(request.Rollback(good), func(d promotion.Decision) bool { return d.Action.Promotes() && d.Release.Tag == good })
	}
	return all
}

// lifts returns the requests that end the quarantines of a release, as far as they are in
// the namespace of the Rollout.
func lifts(in promotion.Input, release v1alpha1.VersionInfo) []request.Request {
	var all []request.Request
	for _, q := range promotion.QuarantinesOn(in, release) {
		if name, own := q.OwnName(); own {
			all = append(all, request.Lift(name))
		}
	}
	return all
}

// try returns what the engine decides after a request.
func try(in promotion.Input, r request.Request, tag string) Remedy {
	d := promotion.Decide(r.Apply(in))
	if d.Action.Promotes() && d.Release.Tag == tag {
		return Remedy{Request: r, Promotes: true}
	}
	remedy := Remedy{Request: r}
	switch left := promotion.StandingOf(in, d, tag).Verdict; {
	case d.Awaited != nil && d.Awaited.Release.Tag == tag:
		remedy.Left = d.Awaited.Holds
	case left != nil:
		remedy.Left = left.Holds
	}
	return remedy
}

// helps reports whether a hold ends or becomes weaker, and no other one comes. Only what
// somebody decides makes fewer approvals missing.
func helps(before, after []verdict.Hold, decides bool) bool {
	was, is := reasons(before), reasons(after)
	more := slices.ContainsFunc(is, func(reason string) bool { return !slices.Contains(was, reason) })
	return !more && len(after) > 0 && !slices.EqualFunc(before, after, func(a, b verdict.Hold) bool {
		return a == b || !decides && a.Reason == b.Reason && isOfPeople(a.Reason)
	})
}

// isOfPeople reports whether a release is held for want of approvals.
func isOfPeople(reason string) bool {
	return reason == v1alpha1.ApprovalRequiredReason || reason == v1alpha1.ApprovalRejectedReason
}
