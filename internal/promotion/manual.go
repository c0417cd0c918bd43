// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// chooseManually promotes the release that a user requests, unless it is already the
// current one: any tag that is pinned, or a known release that is forced.
func (d *Decision) chooseManually(in Input) bool {
	wanted := in.Rollout.ChosenManually()
	if d.Problem != nil || wanted == "" || in.isFollowed(wanted) {
		return false
	}
	release := releases.Known(d.Ledger, wanted)
	if len(holdsPast(in, release, chosen)) > 0 {
		return false
	}
	d.promote(in, release, v1alpha1.GroundsPinned)
	d.Manual = true
	d.Reason, d.Message = v1alpha1.PinnedReason, pinnedText
	if in.Rollout.Pinned() == "" {
		d.Grounds = v1alpha1.GroundsForced
		d.Reason, d.Message = v1alpha1.ForcedReason, forcedText
		if slices.ContainsFunc(in.Upstreams.Environments, func(e upstream.Environment) bool { return e.Holds(in.forUpstreams(), release) != nil }) {
			d.Lifted = []v1alpha1.LiftedHold{v1alpha1.LiftedUpstreams}
		}
	}
	return true
}

// Backward reports whether a user promotes a release that the policy's order ranks older
// than the current one. If the order cannot compare them, the one that appeared earlier
// is older.
func (d Decision) Backward(in Input) bool {
	current := in.Rollout.Current()
	if !d.Manual || current == nil || in.Policy.IsOfAnother(current) {
		return false
	}
	if in.Policy.Order.Kind() == releases.ByAppearance {
		at := releases.LastIndex(d.Ledger, d.Release.Tag)
		return at >= 0 && at < releases.LastIndex(d.Ledger, current.Version.Tag)
	}
	return in.Policy.Order.Relation(d.Release, releases.AsListed(d.Ledger, current.Version)) == releases.Older
}

// impossible explains why the release that a user requests cannot be promoted; nil if it
// can.
func impossible(rollout *v1alpha1.Rollout, ledger []v1alpha1.VersionInfo) *verdict.Problem {
	pinned, forced := rollout.Pinned(), rollout.Forced()
	switch {
	case pinned != "" && !releases.IsTag(pinned):
		return &verdict.Problem{
			Reason:  v1alpha1.InvalidWantedVersionReason,
			Message: "spec.wantedVersion " + verdict.Quote(pinned) + " cannot be a tag in an OCI registry: correct or remove it",
		}
	case pinned == "" && forced != "" && !(releases.IsTag(forced) && releases.Contains(ledger, forced)):
		return &verdict.Problem{
			Reason: v1alpha1.UnknownReleaseReason,
			Message: fmt.Sprintf("%s names %s, which is no known release: correct or remove it, or set spec.wantedVersion",
				v1alpha1.ForceDeployAnnotation, verdict.Quote(forced)),
		}
	}
	return nil
}

// chooseRetry re-evaluates the failed current release if a user requests it.
func (d *Decision) chooseRetry(in Input) bool {
	if !has(in.Rollout, v1alpha1.RetryAnnotation) || in.Rollout.Current().State() != v1alpha1.BakeFailed {
		return false
	}
	d.Action, d.Reason = Retry, v1alpha1.RetryRequestedReason
	d.Message = "a retry was requested"
	return true
}

// answer handles the requests that users made by annotation: it finds those that this
// decision uses up, and answers the others.
func (d *Decision) answer(in Input) {
	switch {
	case d.Reason == v1alpha1.TagMovedReason:
		return // no user requested it
	case in.isOutdated() && !d.Manual:
		d.answerAdopt(in)
		return // what the others are about is not known
	}
	switch d.Action {
	case Promote, Supersede:
		d.answerUnblockOfRollback(in)
		d.consume(in, usedUpBy(in, d)...)
	case Retry:
		d.consume(in, v1alpha1.RetryAnnotation)
	case Nothing, Wait, Adopt, StartBake, FinishBake, FailBake:
		d.answerRetry(in)
		d.answerUnblock(in)
	}
	d.answerForce(in)
	d.answerBypass(in)
	d.answerPromote(in)
	d.answerAdopt(in)
	if !d.Action.Promotes() && (usedTheWords(in, decided(in.Rollout)) || isUnpinned(in.Rollout)) {
		d.consume(in, v1alpha1.DeployMessageAnnotation, v1alpha1.DeployUserAnnotation)
	}
}

// usedUpBy returns the annotations that a promotion uses up. A message and a user name
// for this promotion must not be taken for those of the next one.
func usedUpBy(in Input, d *Decision) []string {
	keys := []string{v1alpha1.DeployMessageAnnotation, v1alpha1.DeployUserAnnotation, v1alpha1.RetryAnnotation}
	if in.Rollout.AsksToAdopt() {
		keys = append(keys, v1alpha1.AdoptAnnotation)
	}
	if in.Rollout.Annotations[v1alpha1.ForceDeployAnnotation] == d.Release.Tag {
		keys = append(keys, v1alpha1.ForceDeployAnnotation)
	}
	if in.Rollout.Annotations[v1alpha1.BypassGatesAnnotation] == d.Release.Tag {
		keys = append(keys, v1alpha1.BypassGatesAnnotation)
	}
	if in.Rollout.Annotations[v1alpha1.PromoteAnnotation] == d.Release.Tag {
		keys = append(keys, v1alpha1.PromoteAnnotation)
	}
	if in.Rollout.UnblocksFailed() && (!d.Manual || in.Upstreams.IsPromoted(in.forUpstreams(), d.Release.Tag)) {
		keys = append(keys, v1alpha1.UnblockFailedAnnotation)
	}
	return keys
}

// leftover is how long after its end a promotion still uses up the message and the user
// name given for it. After that, the same texts may be given for another promotion.
const leftover = time.Minute

// usedTheWords reports whether message and user name belong to the current promotion, but
// could not be removed when it was recorded. They must not sign what another user does
// next.
func usedTheWords(in Input, current *v1alpha1.DeploymentHistoryEntry) bool {
	if current == nil || current.RequestDigest == "" {
		return false
	}
	if ended := current.BakeEndTime; !current.State().Running() && (ended == nil || in.Now.Sub(ended.Time) > leftover) {
		return false
	}
	return current.RequestDigest == in.requestDigest()
}

// isUnpinned reports whether a user has just removed a pin, and has asked for nothing else. What
// was said next to that is said about no promotion.
func isUnpinned(rollout *v1alpha1.Rollout) bool {
	current := decided(rollout)
	if current == nil || current.Grounds != v1alpha1.GroundsPinned || rollout.ChosenManually() != "" || rollout.Generation == rollout.Status.ObservedGeneration {
		return false
	}
	return !slices.ContainsFunc([]string{
		v1alpha1.RetryAnnotation, v1alpha1.UnblockFailedAnnotation, v1alpha1.BypassGatesAnnotation, v1alpha1.PromoteAnnotation, v1alpha1.AdoptAnnotation,
	}, func(request string) bool { return has(rollout, request) })
}

// answerRetry answers a request to retry. A retry that is already under way needs no
// answer.
func (d *Decision) answerRetry(in Input) {
	current := in.Rollout.Current()
	if !has(in.Rollout, v1alpha1.RetryAnnotation) {
		return
	}
	d.consume(in, v1alpha1.RetryAnnotation)
	switch {
	case current == nil:
		d.decline(v1alpha1.RetryNotNeededReason, "there is nothing to retry: nothing was promoted yet")
	case !current.State().Running() || current.LastRetryTimestamp == nil:
		d.decline(v1alpha1.RetryNotNeededReason,
			fmt.Sprintf("there is nothing to retry: the promotion of %s has not failed", current.Version.Tag))
	}
}

// answerForce ends a request for the release that is already current, or that must not be
// promoted, with its message and user name. If the request stayed, it would bring that version
// back after the next promotion, or when the quarantine ends.
func (d *Decision) answerForce(in Input) {
	forced, current := in.Rollout.Annotations[v1alpha1.ForceDeployAnnotation], in.Rollout.Current()
	if forced == "" || in.Rollout.Pinned() != "" {
		return
	}
	recalled := notRecalled(in, releases.Known(d.Ledger, forced))
	deployed := current != nil && current.Version.Tag == forced
	if !deployed && recalled == nil {
		return
	}
	d.consume(in, v1alpha1.ForceDeployAnnotation, v1alpha1.DeployMessageAnnotation, v1alpha1.DeployUserAnnotation)
	switch {
	case !deployed:
		d.decline(recalled.Reason, fmt.Sprintf("%s has no effect: %s", v1alpha1.ForceDeployAnnotation, recalled.Message))
		return
	case usedTheForce(in, decided(in.Rollout)):
		return
	}
	d.decline(v1alpha1.ForceDeployNotNeededReason,
		fmt.Sprintf("%s names %s, which is deployed already", v1alpha1.ForceDeployAnnotation, forced))
}

// usedTheForce reports whether the current promotion was the one that a force requested,
// if the controller died before it could remove the annotation. Such a request is not
// reported as unnecessary.
func usedTheForce(in Input, current *v1alpha1.DeploymentHistoryEntry) bool {
	return current.State().Running() && current.Grounds == v1alpha1.GroundsForced && current.RequestDigest == in.requestDigest()
}

func (d *Decision) answerUnblock(in Input) {
	switch value, asked := in.Rollout.Annotations[v1alpha1.UnblockFailedAnnotation]; {
	case asked && value != "true":
		d.Declined = &verdict.Problem{
			Reason:  v1alpha1.InvalidRequestReason,
			Message: fmt.Sprintf(`%s must be "true", not %s`, v1alpha1.UnblockFailedAnnotation, verdict.Quote(value)),
		}
	case asked && usedAnUnblock(decided(in.Rollout)):
		d.consume(in, v1alpha1.UnblockFailedAnnotation)
	case asked && !needsUnblock(in, d.Candidates):
		d.consume(in, v1alpha1.UnblockFailedAnnotation)
		d.decline(v1alpha1.UnblockNotNeededReason, "there is nothing to unblock: no failure holds a release back")
	}
}

// answerUnblockOfRollback answers an unblock while there is no release that it lets go.
// The Rollout goes back. If the request stayed, it would bring back the release that has
// failed.
func (d *Decision) answerUnblockOfRollback(in Input) {
	if d.Back != nil && in.Rollout.UnblocksFailed() {
		d.decline(v1alpha1.UnblockNotNeededReason, fmt.Sprintf("no release could be unblocked, and the Rollout goes back to %s", d.Release.Tag))
	}
}

// usedAnUnblock reports whether the current promotion was the one that an unblock was
// for, if the controller died before it could remove the annotation. The unblock must not
// lift a second hold.
func usedAnUnblock(current *v1alpha1.DeploymentHistoryEntry) bool {
	return current.State().Running() && current.HasLifted(v1alpha1.LiftedFailure)
}

// needsUnblock reports whether a failure, here or elsewhere, or an unhealthy HealthCheck
// prevents automatic promotion, whether or not there is a candidate at present.
func needsUnblock(in Input, candidates []Verdict) bool {
	if in.Rollout.Current().State() == v1alpha1.BakeFailed || isOverdue(in) || withinRollbackLimit(in, v1alpha1.VersionInfo{}) != nil {
		return true
	}
	unwell := nothingUnhealthy(in, v1alpha1.VersionInfo{}) != nil // the same for every candidate
	return slices.ContainsFunc(candidates, func(v Verdict) bool {
		return unwell || notFailedBefore(in, v.Release) != nil || notQuarantined(in, v.Release) != nil
	})
}

// answerBypass answers a request to bypass gates. A bypass for a release that is not a
// candidate stays, and takes effect when the release becomes one. Where there is an
// Environment, it ends: what goes past that must not take effect later.
func (d *Decision) answerBypass(in Input) {
	asked := in.Rollout.Annotations[v1alpha1.BypassGatesAnnotation]
	switch {
	case asked == "" || d.Action.Promotes() && d.Release.Tag == asked:
	case in.runsTag(asked):
		d.consume(in, v1alpha1.BypassGatesAnnotation)
		if !usedABypass(decided(in.Rollout)) {
			d.decline(v1alpha1.BypassNotNeededReason,
				fmt.Sprintf("%s names %s, which is deployed already", v1alpha1.BypassGatesAnnotation, asked))
		}
	case len(in.Upstreams.Environments) > 0:
		if ended := d.endedBypass(in, asked); ended != nil {
			d.consume(in, v1alpha1.BypassGatesAnnotation)
			d.decline(ended.Reason, ended.Message)
		}
	case Bypassed(in, d.Candidates) == "" && d.Declined == nil:
		d.Declined = &verdict.Problem{
			Reason: v1alpha1.NoSuchCandidateReason,
			Message: fmt.Sprintf("%s names %s, which is no candidate: it takes effect when it is one",
				v1alpha1.BypassGatesAnnotation, verdict.Quote(asked)),
		}
	}
}

// endedBypass says why a request to go past an Environment ends without an effect; nil if the
// release goes as soon as nothing else holds it.
func (d *Decision) endedBypass(in Input, asked string) *verdict.Problem {
	switch candidate := verdictOf(*d, asked); {
	case d.Action.Promotes():
		return &verdict.Problem{Reason: environmentsv1.BypassEndedReason, Message: fmt.Sprintf(
			"%s names %s, and %s was promoted first: annotate it again to let it go now", v1alpha1.BypassGatesAnnotation, verdict.Quote(asked), d.Release.Tag)}
	case candidate == nil:
		return &verdict.Problem{Reason: environmentsv1.BypassEndedReason, Message: fmt.Sprintf(
			"%s names %s, which is no candidate: annotate it again when it is one", v1alpha1.BypassGatesAnnotation, verdict.Quote(asked))}
	default:
		return in.Upstreams.RefusedBypass(in.forUpstreams(), candidate.Release)
	}
}

// usedABypass reports whether the current promotion was the one that a bypass was for, in
// the same way.
func usedABypass(current *v1alpha1.DeploymentHistoryEntry) bool {
	return current.State().Running() && current.HasLifted(v1alpha1.LiftedGates)
}

// Bypassed returns the candidate that a user lets go past the gates; empty if there is
// none.
func Bypassed(in Input, candidates []Verdict) string {
	asked := in.Rollout.Annotations[v1alpha1.BypassGatesAnnotation]
	for _, candidate := range candidates {
		if candidate.Release.Tag == asked {
			return asked
		}
	}
	return ""
}

// consume requests the removal of those annotations that exist, each one once.
func (d *Decision) consume(in Input, keys ...string) {
	for _, key := range keys {
		if has(in.Rollout, key) && !slices.Contains(d.Consumed, key) {
			d.Consumed = append(d.Consumed, key)
		}
	}
}

// decline answers a request that ends without an effect.
func (d *Decision) decline(reason, message string) {
	d.Answers = append(d.Answers, verdict.Note{Reason: reason, Message: message})
}

func has(rollout *v1alpha1.Rollout, annotation string) bool {
	_, ok := rollout.Annotations[annotation]
	return ok
}

// triggeredBy returns the user who claims to have caused a manual promotion. For all
// other promotions it returns the controller.
func triggeredBy(in Input, o Outcome) v1alpha1.TriggeredBy {
	if user := in.words(v1alpha1.DeployUserAnnotation); o.Manual && user != "" {
		return v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredByUser, Name: truncate.Text(user, verdict.LongestName)}
	}
	return v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredBySystem, Name: SystemName}
}

// words returns the text that a user gave for this choice in an annotation.
func (in Input) words(annotation string) string {
	if in.ForeignAnnotations[annotation] {
		return ""
	}
	return strings.TrimSpace(in.Rollout.Annotations[annotation])
}

func (in Input) requestDigest() string {
	return RequestDigest(in.words(v1alpha1.DeployUserAnnotation), in.words(v1alpha1.DeployMessageAnnotation))
}

// RequestDigest identifies the user name and the message for a choice. It is empty if both
// are.
func RequestDigest(user, message string) string {
	if user == "" && message == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(user + "\x00" + message))
	return hex.EncodeToString(sum[:8])
}

// answerPromote answers a request to promote. One for a release that is not a candidate
// stays, and takes effect when the release becomes one.
func (d *Decision) answerPromote(in Input) {
	asked, current := in.Rollout.Annotations[v1alpha1.PromoteAnnotation], in.Rollout.Current()
	switch {
	case asked == "" || len(in.Upstreams.Environments) == 0 || d.Action.Promotes() && d.Release.Tag == asked:
	case current != nil && current.Version.Tag == asked:
		d.consume(in, v1alpha1.PromoteAnnotation)
		if !current.State().Running() {
			d.decline(environmentsv1.PromoteNotNeededReason, fmt.Sprintf("%s names %s, which is deployed already", v1alpha1.PromoteAnnotation, asked))
		}
	case !in.Upstreams.LeavesPromotionsToUsers(in.forUpstreams()):
		d.consume(in, v1alpha1.PromoteAnnotation)
		d.decline(environmentsv1.PromoteNotNeededReason, fmt.Sprintf("%s has no effect: no Environment leaves promotions to users", v1alpha1.PromoteAnnotation))
	case verdictOf(*d, asked) == nil && d.Declined == nil:
		d.Declined = &verdict.Problem{
			Reason: v1alpha1.NoSuchCandidateReason,
			Message: fmt.Sprintf("%s names %s, which is no candidate: it takes effect when it is one",
				v1alpha1.PromoteAnnotation, verdict.Quote(asked)),
		}
	}
}
