// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// setReady computes Ready, Reconciling and Stalled together, because kstatus reads them
// together. Stalled is True while a user must act, and Reconciling while something
// expected has not happened yet. Ready stays True during a running promotion, to keep
// dashboards and alerts quiet, unless its release is not healthy or it takes too long.
func setReady(r report) {
	current := r.Rollout.Current()
	if problem := r.stalling(); problem != nil {
		r.stall(problem.Reason, problem.Message)
		return
	}
	if problem := r.unreadable(); problem != nil {
		r.wait(metav1.ConditionFalse, problem.Reason, problem.Message)
		return
	}
	switch {
	case current == nil && r.decision.Reason == v1alpha1.FirstReleaseNotAppliedReason:
		r.waitForFirst()
	case current == nil:
		r.waitForFirstRelease()
	case current.State() == v1alpha1.BakeFailed:
		r.stall(v1alpha1.BakeTimeFailedReason, r.summary(current))
	case r.rollback.Reason == v1alpha1.RollbackOverdueReason:
		r.stall(v1alpha1.RollbackOverdueReason, r.rollback.Message)
	case current.State().Running():
		r.run(current)
	case r.targetsTrail():
		r.trail(current)
	default:
		r.remove(v1alpha1.ReconcilingCondition, v1alpha1.StalledCondition)
		r.set(v1alpha1.ReadyCondition, metav1.ConditionTrue, r.successReason(current), r.summary(current))
	}
}

// run reports a promotion that is under way.
func (r report) run(current *v1alpha1.DeploymentHistoryEntry) {
	d := r.decision
	switch unhealthy := promotion.Unhealthy(r.Health.Checks); {
	case !d.LateSince.IsZero():
		r.wait(metav1.ConditionFalse, v1alpha1.BakeOverdueReason,
			fmt.Sprintf("%s; it was to be over at %s", r.summary(current), d.LateSince.UTC().Format(time.RFC3339)))
	case d.Overdue && (d.Unproven || len(unhealthy) > 0):
		r.wait(metav1.ConditionFalse, v1alpha1.HealthNotProvenReason, r.summary(current))
	default:
		r.wait(metav1.ConditionTrue, runningReason(current), r.summary(current))
	}
}

func runningReason(current *v1alpha1.DeploymentHistoryEntry) string {
	if current.State() == v1alpha1.BakeDeploying && current.LastRetryTimestamp != nil {
		return v1alpha1.BakeTimeRetryingReason
	}
	return v1alpha1.RolloutSucceededReason
}

func (r report) stall(reason, message string) {
	r.remove(v1alpha1.ReconcilingCondition)
	r.set(v1alpha1.StalledCondition, metav1.ConditionTrue, reason, message)
	r.set(v1alpha1.ReadyCondition, metav1.ConditionFalse, reason, message)
}

func (r report) wait(ready metav1.ConditionStatus, reason, message string) {
	r.remove(v1alpha1.StalledCondition)
	r.set(v1alpha1.ReconcilingCondition, metav1.ConditionTrue, v1alpha1.ProgressingReason, message)
	r.set(v1alpha1.ReadyCondition, ready, reason, message)
}

// waitForFirst waits until the targets have applied the release of the first entry. How
// long Flux has tried is not a change.
func (r report) waitForFirst() {
	message := truncate.Message(r.decision.Message)
	if before := r.condition(v1alpha1.ReadyCondition); before.Reason == r.decision.Reason && truncate.SameButDurations(before.Message, message) {
		message = before.Message
	}
	r.wait(metav1.ConditionFalse, r.decision.Reason, message)
}

// trail waits for targets that have to follow. If a user has marked the promotion as
// successful, the reason stays: other clients read it.
func (r report) trail(current *v1alpha1.DeploymentHistoryEntry) {
	if r.markedSuccessful() {
		r.wait(metav1.ConditionTrue, v1alpha1.DeploymentMarkedSuccessfulReason, r.summary(current))
		return
	}
	r.wait(metav1.ConditionFalse, r.targetsApplied().Reason, r.summary(current))
}

// markedManually are the beginnings of the messages that versions of the dashboard write into
// the entry of a promotion that a user marks as successful.
var markedManually = []string{"Manually marked as successful", "Deployment manually marked as successful"}

// markedSuccessful reports whether a user marked the current promotion as successful in
// the dashboard, which is another client of this API: it shows that only in a text and in
// the reason of Ready. The condition may have changed since then, for example while
// something could not be read. The entry is final and still shows it. Only Ready depends
// on it.
func (r report) markedSuccessful() bool {
	current := r.Rollout.Current()
	said := current.State() == v1alpha1.BakeSucceeded && current.BakeStatusMessage != nil &&
		slices.ContainsFunc(markedManually, func(text string) bool { return strings.HasPrefix(*current.BakeStatusMessage, text) })
	ready := r.condition(v1alpha1.ReadyCondition).Reason == v1alpha1.DeploymentMarkedSuccessfulReason
	return (said || ready) && !r.decision.Action.Promotes()
}

// stalling returns the problem that a user must fix, if any.
func (r report) stalling() *promotion.Problem {
	switch {
	case r.decision.Problem != nil:
		return r.decision.Problem
	case isReason(r.Health.Problem, v1alpha1.InvalidSelectorReason, v1alpha1.AccessDeniedReason):
		return r.Health.Problem
	case isReason(r.Policy.Problem, v1alpha1.InvalidImagePolicyReason, v1alpha1.AccessDeniedReason):
		return r.Policy.Problem
	}
	if applied := r.targetsApplied(); slices.Contains(conflicts, applied.Reason) {
		return &promotion.Problem{Reason: applied.Reason, Message: applied.Message}
	}
	return nil
}

// conflicts contains the reasons for which targets cannot apply the version.
var conflicts = []string{v1alpha1.TargetConflictReason, v1alpha1.DigestMismatchReason, v1alpha1.HistoryOutdatedReason}

// condition returns a condition as it was stored or set in this pass, or the zero
// condition. Nothing but conditions may depend on it.
func (r report) condition(kind string) metav1.Condition {
	if c := apimeta.FindStatusCondition(r.status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func isReason(problem *promotion.Problem, reasons ...string) bool {
	return problem != nil && slices.Contains(reasons, problem.Reason)
}

// unreadable returns what could not be read and will be tried again.
func (r report) unreadable() *promotion.Problem {
	if r.Policy.Blocking {
		return &promotion.Problem{Reason: v1alpha1.RolloutFailedReason, Message: r.Policy.Problem.Message}
	}
	for _, problem := range []*promotion.Problem{r.Targets.Problem, r.Gates.Problem, r.Health.Problem} {
		if problem != nil {
			return problem
		}
	}
	return nil
}

// targetsTrail reports whether a target has not applied the version yet, such as one that
// was annotated after the promotion.
func (r report) targetsTrail() bool {
	for _, t := range r.status.Targets {
		if t.State != v1alpha1.TargetApplied {
			return true
		}
	}
	return false
}

func (r report) successReason(current *v1alpha1.DeploymentHistoryEntry) string {
	switch {
	case r.markedSuccessful():
		return v1alpha1.DeploymentMarkedSuccessfulReason
	case r.Rollout.Spec.BakeTimeOf(current) != nil && current.BakeStartTime != nil:
		return v1alpha1.BakeTimePassedReason
	}
	return v1alpha1.RolloutSucceededReason
}

func (r report) noReleases() string {
	message := fmt.Sprintf("ImagePolicy %s names no release yet", r.Policy.Name)
	if latest := r.Policy.Latest; latest != nil && !r.Policy.Order.Admits(latest.Tag) {
		message = fmt.Sprintf("ImagePolicy %s still names %s, which its range or filter does not admit: wait for Flux to look again, or correct them",
			r.Policy.Name, latest.Tag)
	}
	if r.Policy.Problem != nil {
		message += ": " + r.Policy.Problem.Message
	}
	return message
}

// isHindered reports whether it is known what keeps a target from being applied.
func (r report) isHindered() bool {
	return slices.ContainsFunc(r.status.Targets, func(t v1alpha1.TargetStatus) bool {
		return t.State == v1alpha1.TargetPending && t.Reason != ""
	})
}

// troubles returns what keeps the current release from being applied and healthy. While
// Flux is working, that is nothing. A target that has failed or cannot go on, or an
// Unhealthy check, is reported at once, not only at the deadline.
func (r report) troubles(current *v1alpha1.DeploymentHistoryEntry) []string {
	var all []string
	applied := r.targetsApplied()
	if r.targetsTrail() && !r.decision.Overdue && (!current.State().Running() || applied.Reason == v1alpha1.TargetFailedReason || r.isHindered()) {
		all = append(all, applied.Message)
	}
	if unhealthy := promotion.Unhealthy(r.Health.Checks); current.State().Running() && len(unhealthy) > 0 {
		all = append(all, "Unhealthy: "+namesOf(unhealthy))
	}
	return all
}

// allOf returns the messages of the holds.
func allOf(holds []promotion.Hold) string {
	messages := make([]string, 0, len(holds))
	for _, hold := range holds {
		messages = append(messages, hold.Message)
	}
	return truncate.Join(messages, "; ")
}

// summary returns one line about the current release and what the newest candidate waits
// for.
func (r report) summary(current *v1alpha1.DeploymentHistoryEntry) string {
	parts := append([]string{r.headline(current)}, r.troubles(current)...)
	if considered := promotion.Considered(r.verdicts); len(considered) > 0 && !considered[0].Eligible() {
		parts = append(parts, waiting(considered[0]))
	}
	if r.Policy.Problem != nil {
		parts = append(parts, r.Policy.Problem.Message)
	}
	if current.State() != v1alpha1.BakeDeploying { // before, progress of targets is not stored
		parts = append(parts, notFollowed(r.status.Targets)...)
	}
	return strings.Join(parts, "; ")
}

// headline returns the state of the current release and, if it failed, how to continue.
func (r report) headline(current *v1alpha1.DeploymentHistoryEntry) string {
	state := promotion.StateMessage(r.Rollout)
	if r.decision.Overdue {
		state = r.decision.Message
	}
	if current.State() == v1alpha1.BakeFailed {
		return failure(r.Input, state)
	}
	return about(current.Version.Tag, state)
}

func about(tag, state string) string {
	if state == "" {
		return tag
	}
	return tag + ": " + state
}

// longestCause is the maximum length of a failure cause, to never cut off the text about
// how to continue. The history has more of the cause.
const longestCause = 512

// failure returns what has failed, why, and how to continue.
func failure(in promotion.Input, cause string) string {
	return about(in.Rollout.Current().Version.Tag, truncate.Text(cause, longestCause)) + "; " + promotion.WayOut(in)
}

// waiting returns what a candidate waits for. The headline explains how to go on after a
// failure.
func waiting(candidate promotion.Verdict) string {
	others := slices.DeleteFunc(slices.Clone(candidate.Holds), func(h promotion.Hold) bool {
		return h.Reason == v1alpha1.PreviousBakeFailedReason
	})
	if len(others) == 0 {
		return candidate.Release.Tag + " waits for that"
	}
	return promotion.Waiting(candidate.Release.Tag, allOf(others))
}
