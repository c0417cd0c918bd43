// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// request is what a user asks for with an annotation of the Rollout. A request that is used
// up or declined is removed. All others stay.
type request struct {
	annotation string
	// usedUpBy reports whether what happens next is what it asks for, or has just happened.
	usedUpBy func(asked) bool
	// declinedWhen returns why it ends without an effect; nil if it does not. If it stayed, it
	// would take effect at a time at which nobody expects it.
	declinedWhen func(asked) *verdict.Problem
	// staysWhile returns why it has no effect at present; nil if there is nothing to say.
	staysWhile func(asked) *verdict.Problem
}

// requests is the complete policy of what users can ask for by annotation, in the order in
// which the answers are given. A pin is no request, but a state that a user wants.
var requests = []request{
	{v1alpha1.RetryAnnotation, func(asked) bool { return true }, retryNotNeeded, nothing},
	{v1alpha1.UnblockFailedAnnotation, unblockUsed, unblockNotNeeded, unblockInvalid},
	{v1alpha1.ForceDeployAnnotation, forceUsed, forceEnded, nothing},
	{v1alpha1.BypassGatesAnnotation, bypassUsed, bypassEnded, asked.tooEarly},
	{v1alpha1.PromoteAnnotation, promoteUsed, promoteNotNeeded, asked.tooEarly},
	{v1alpha1.AdoptAnnotation, adoptUsed, adoptNotNeeded, asked.mustBeTrue},
}

// asked is a request, and what it is compared with.
type asked struct {
	Outcome
	known     known
	rollout   *v1alpha1.Rollout
	policy    releases.Policy
	upstreams upstream.Asked
	// recalled holds releases even for users.
	recalled check
	// outdated is true while the history is older than the targets.
	outdated bool
	// digest of the message and the user name.
	digest string
	// annotation of the request, and its value.
	annotation, value string
}

func nothing(asked) *verdict.Problem { return nil }

// answers returns what happens to the requests, given what happens next. While the history is
// outdated, it is not known what the others are about than the one to adopt.
func answers(in Input, o Outcome, k known) Requests {
	r := Requests{Problem: k.problem}
	if o.Reason == v1alpha1.TagMovedReason {
		return r // no user requested it
	}
	a := asked{
		Outcome: o, known: k, rollout: in.Rollout, policy: in.Policy, upstreams: in.upstreams(),
		recalled: in.holding().Recalled, outdated: in.Targets.Outdate(in.Rollout.Status.History), digest: requestDigest(in.Rollout, in.ForeignAnnotations),
	}
	unknown := a.outdated && !o.Manual
	if !unknown && a.wordsUsedUp(in.Now) {
		r.consume(in.Rollout, v1alpha1.DeployMessageAnnotation, v1alpha1.DeployUserAnnotation)
	}
	for _, request := range requests {
		a.annotation, a.value = request.annotation, in.Rollout.Annotations[request.annotation]
		if has(in.Rollout, request.annotation) && (!unknown || request.annotation == v1alpha1.AdoptAnnotation) {
			r.answer(request, a)
		}
	}
	return r
}

// wordsUsedUp reports whether message and user name are used up. Those for this promotion
// must not be taken for those of the next one.
func (a asked) wordsUsedUp(now time.Time) bool {
	if a.Action.Promotes() {
		return a.Action != Adopt && a.Awaited == nil
	}
	return usedTheWords(now, decided(a.rollout), a.digest) || isUnpinned(a.rollout, a.policy)
}

func (r *Requests) answer(of request, a asked) {
	switch ended := of.declinedWhen(a); {
	case ended != nil:
		r.Answers = append(r.Answers, verdict.Note(*ended))
	case !of.usedUpBy(a):
		r.Declined = cmp.Or(r.Declined, of.staysWhile(a))
		return
	}
	r.consume(a.rollout, of.annotation)
	if of.annotation == v1alpha1.ForceDeployAnnotation { // with its message and user name
		r.consume(a.rollout, v1alpha1.DeployMessageAnnotation, v1alpha1.DeployUserAnnotation)
	}
}

// consume requests the removal of those annotations that exist, each one once.
func (r *Requests) consume(rollout *v1alpha1.Rollout, keys ...string) {
	for _, key := range keys {
		if has(rollout, key) && !slices.Contains(r.Consumed, key) {
			r.Consumed = append(r.Consumed, key)
		}
	}
}

// promotes reports whether a release is promoted that was not deployed.
func (a asked) promotes() bool { return a.Action == Promote || a.Action == Supersede }

// isNext reports whether the release that the request names is promoted or adopted.
func (a asked) isNext() bool { return a.Action.Promotes() && a.value == a.Release.Tag }

// isPromoted reports whether the release that the request names is promoted.
func (a asked) isPromoted() bool { return a.promotes() && a.value == a.Release.Tag }

func (a asked) problem(reason, format string, args ...any) *verdict.Problem {
	return &verdict.Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// mustBeTrue says that a request has a value that means nothing.
func (a asked) mustBeTrue() *verdict.Problem {
	if a.value == "true" {
		return nil
	}
	return a.problem(v1alpha1.InvalidRequestReason, `%s must be "true", not %s`, a.annotation, verdict.Quote(a.value))
}

// deployedAlready declines a request for the current release.
func (a asked) deployedAlready(reason string) *verdict.Problem {
	return a.problem(reason, "%s names %s, which is deployed already", a.annotation, a.value)
}

// tooEarly says that a request takes effect when the release becomes a candidate. Where there
// is an Environment, a bypass does not, and a request to promote does only there.
func (a asked) tooEarly() *verdict.Problem {
	applies := (len(a.upstreams.Environments) > 0) == (a.annotation == v1alpha1.PromoteAnnotation)
	if !applies || a.value == "" || a.isNext() || verdictOf(a.known.candidates, a.value) != nil {
		return nil
	}
	return a.problem(v1alpha1.NoSuchCandidateReason, "%s names %s, which is not a candidate; the request takes effect once it is", a.annotation, verdict.Quote(a.value))
}

// justPromoted returns the promotion that may have been the one that a request was for, if
// the controller died before it could remove the annotation. Such a request is not reported
// as unnecessary, and must not lift a second hold.
func (a asked) justPromoted() *v1alpha1.DeploymentHistoryEntry {
	if current := decided(a.rollout); current.State().Running() {
		return current
	}
	return nil
}

// retryNotNeeded declines a retry. One that is already under way needs no answer.
func retryNotNeeded(a asked) *verdict.Problem {
	switch current := a.rollout.Current(); {
	case a.promotes() || a.Action == Retry:
	case current == nil:
		return a.problem(v1alpha1.RetryNotNeededReason, "there is nothing to retry: nothing was promoted yet")
	case !current.State().Running() || current.LastRetryTimestamp == nil:
		return a.problem(v1alpha1.RetryNotNeededReason, "there is nothing to retry: the promotion of %s has not failed", current.Version.Tag)
	}
	return nil
}

func unblockUsed(a asked) bool {
	switch {
	case a.value != "true" || a.Action == Retry:
		return false
	case a.promotes():
		return !a.Manual || a.upstreams.IsPromoted(a.Release.Tag)
	}
	return a.justPromoted().HasLifted(v1alpha1.LiftedFailure)
}

// unblockNotNeeded declines an unblock. If the Rollout goes back, there is no release that it
// lets go, and if the request stayed, it would bring back the release that has failed.
func unblockNotNeeded(a asked) *verdict.Problem {
	switch {
	case a.value != "true" || a.Action == Retry:
	case a.promotes():
		if a.Back != nil {
			return a.problem(v1alpha1.UnblockNotNeededReason, "no release could be unblocked, and the Rollout goes back to %s", a.Release.Tag)
		}
	case !unblockUsed(a) && !a.known.unblocks:
		return a.problem(v1alpha1.UnblockNotNeededReason, "there is nothing to unblock: no failure holds a release back")
	}
	return nil
}

func unblockInvalid(a asked) *verdict.Problem {
	if a.promotes() || a.Action == Retry {
		return nil
	}
	return a.mustBeTrue()
}

// forceEnded ends a request for the release that is already current, or that must not be
// promoted. If the request stayed, it would bring that version back after the next promotion,
// or when the quarantine ends.
func forceEnded(a asked) *verdict.Problem {
	switch {
	case a.value == "", a.rollout.Pinned() != "", a.isNext(), justForced(a):
	case a.isDeployed():
		return a.deployedAlready(v1alpha1.ForceDeployNotNeededReason)
	default:
		if recalled := a.recalled(releases.Known(a.known.ledger, a.value)); recalled != nil {
			return a.problem(recalled.Reason, "%s has no effect: %s", a.annotation, recalled.Message)
		}
	}
	return nil
}

// forceUsed reports whether the release is promoted that a user forces, or was just now.
func forceUsed(a asked) bool { return a.isPromoted() || a.rollout.Pinned() == "" && justForced(a) }

func justForced(a asked) bool {
	just := a.justPromoted()
	return just != nil && just.Version.Tag == a.value && just.Grounds == v1alpha1.GroundsForced && just.RequestDigest == a.digest
}

// bypassUsed reports whether a release goes past the gates, or just did.
func bypassUsed(a asked) bool {
	return a.isPromoted() || a.isDeployed() && a.justPromoted().HasLifted(v1alpha1.LiftedGates)
}

// isDeployed reports whether the request names the current release, which stays it.
func (a asked) isDeployed() bool {
	return a.policy.IsCurrent(a.rollout.Status.History, a.value) && !a.isNext()
}

// bypassEnded declines a request to bypass gates. Where there is an Environment, each ends
// that has no effect now: what goes past that must not take effect later.
func bypassEnded(a asked) *verdict.Problem {
	switch candidate := verdictOf(a.known.candidates, a.value); {
	case a.value == "", a.isNext(), bypassUsed(a):
	case a.isDeployed():
		return a.deployedAlready(v1alpha1.BypassNotNeededReason)
	case len(a.upstreams.Environments) == 0:
	case a.Action.Promotes():
		return a.problem(environmentsv1.BypassEndedReason, "%s names %s, and %s was promoted first: annotate it again to let it go now",
			a.annotation, verdict.Quote(a.value), a.Release.Tag)
	case candidate == nil:
		return a.problem(environmentsv1.BypassEndedReason, "%s names %s, which is not a candidate: annotate it again once it is",
			a.annotation, verdict.Quote(a.value))
	default:
		return a.upstreams.RefusedBypass(candidate.Release)
	}
	return nil
}

// promoteUsed reports whether the release is promoted, or was just now.
func promoteUsed(a asked) bool {
	return a.isPromoted() || len(a.upstreams.Environments) > 0 && a.isDeployed() && a.rollout.Current().State().Running()
}

func promoteNotNeeded(a asked) *verdict.Problem {
	switch {
	case a.value == "", len(a.upstreams.Environments) == 0, a.isNext(), promoteUsed(a):
	case a.isDeployed():
		return a.deployedAlready(environmentsv1.PromoteNotNeededReason)
	case !a.upstreams.LeavesPromotionsToUsers():
		return a.problem(environmentsv1.PromoteNotNeededReason, "%s has no effect: no Environment leaves promotions to users", a.annotation)
	}
	return nil
}

// adoptUsed reports whether what the targets carry is adopted, or is not older any more. While
// the history is outdated, the request stays until it can be followed.
func adoptUsed(a asked) bool {
	return a.value == "true" && (a.promotes() || a.Action == Adopt || !a.outdated)
}

func adoptNotNeeded(a asked) *verdict.Problem {
	just := a.rollout.Current().State().Running() && a.rollout.Current().Grounds == v1alpha1.GroundsAdopted
	if a.value != "true" || a.outdated || a.Action == Adopt || just {
		return nil
	}
	return a.problem(v1alpha1.AdoptNotNeededReason, "there is nothing to adopt: the history is not older than the targets")
}

// leftover is how long after its end a promotion still uses up the message and the user
// name given for it. After that, the same texts may be given for another promotion.
const leftover = time.Minute

// usedTheWords reports whether message and user name belong to the current promotion, but
// could not be removed when it was recorded. They must not sign what another user does
// next.
func usedTheWords(now time.Time, current *v1alpha1.DeploymentHistoryEntry, digest string) bool {
	if current == nil || current.RequestDigest == "" {
		return false
	}
	if ended := current.BakeEndTime; !current.State().Running() && (ended == nil || now.Sub(ended.Time) > leftover) {
		return false
	}
	return current.RequestDigest == digest
}

// isUnpinned reports whether a user has just removed a pin, and has asked for nothing else. What
// was said next to that is said about no promotion.
func isUnpinned(rollout *v1alpha1.Rollout, policy releases.Policy) bool {
	current := decided(rollout)
	if current == nil || current.Grounds != v1alpha1.GroundsPinned || policy.Chosen(rollout) != "" || rollout.Generation == rollout.Status.ObservedGeneration {
		return false
	}
	return !slices.ContainsFunc(requests, func(r request) bool {
		return r.annotation != v1alpha1.ForceDeployAnnotation && has(rollout, r.annotation)
	})
}
