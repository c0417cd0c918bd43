// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// setReady computes Ready, Reconciling and Stalled together, so that kstatus
// reads them as one: Stalled while a person must act, Reconciling while
// something expected has not happened yet. Beside a running promotion Ready
// stays True, so that dashboards and alerts built on it stay calm.
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
		r.wait(metav1.ConditionFalse, v1alpha1.NoReleasesReason, r.noReleases())
	case current.State() == v1alpha1.BakeFailed:
		r.stall(v1alpha1.BakeTimeFailedReason, r.story(current))
	case current.State().Running():
		r.wait(metav1.ConditionTrue, runningReason(current), r.story(current))
	case r.targetsTrail():
		r.trail(current)
	default:
		r.remove(v1alpha1.ReconcilingCondition, v1alpha1.StalledCondition)
		r.set(v1alpha1.ReadyCondition, metav1.ConditionTrue, r.successReason(current), r.story(current))
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

// waitForFirst waits until the targets have applied what is to be the first entry. How
// long Flux has tried is no news.
func (r report) waitForFirst() {
	message := truncate.Message(r.decision.Message)
	if before := r.condition(v1alpha1.ReadyCondition); before.Reason == r.decision.Reason && truncate.SameButDurations(before.Message, message) {
		message = before.Message
	}
	r.wait(metav1.ConditionFalse, r.decision.Reason, message)
}

// trail waits for targets that have to follow. Where a person has marked the
// promotion successful, that word stands: others read it from the reason.
func (r report) trail(current *v1alpha1.DeploymentHistoryEntry) {
	if r.markedSuccessful() {
		r.wait(metav1.ConditionTrue, v1alpha1.DeploymentMarkedSuccessfulReason, r.story(current))
		return
	}
	r.wait(metav1.ConditionFalse, r.condition(v1alpha1.TargetsAppliedCondition).Reason, r.story(current))
}

// markedByHand is what the dashboard writes into the entry of a promotion that a
// person marks as successful.
const markedByHand = "Manually marked as successful"

// markedSuccessful reports whether a person said so of the current promotion. The
// condition may have said something else since, as while something could not be read;
// the entry is final and still says it.
func (r report) markedSuccessful() bool {
	current := r.Rollout.Current()
	said := current.State() == v1alpha1.BakeSucceeded && current.BakeStatusMessage != nil && *current.BakeStatusMessage == markedByHand
	ready := r.condition(v1alpha1.ReadyCondition).Reason == v1alpha1.DeploymentMarkedSuccessfulReason
	return (said || ready) && !r.decision.Action.Promotes()
}

// stalling is what a person must mend.
func (r report) stalling() *promotion.Problem {
	switch {
	case r.decision.Problem != nil:
		return r.decision.Problem
	case isReason(r.Health.Problem, v1alpha1.InvalidSelectorReason, v1alpha1.AccessDeniedReason):
		return r.Health.Problem
	case isReason(r.Policy.Problem, v1alpha1.InvalidImagePolicyReason, v1alpha1.AccessDeniedReason):
		return r.Policy.Problem
	}
	if applied := r.condition(v1alpha1.TargetsAppliedCondition); slices.Contains(conflicts, applied.Reason) {
		return &promotion.Problem{Reason: applied.Reason, Message: applied.Message}
	}
	return nil
}

// conflicts are the reasons of targets that keep the version from being applied.
var conflicts = []string{v1alpha1.TargetConflictReason, v1alpha1.DigestMismatchReason}

// condition returns what has been set so far; the zero condition if nothing was.
func (r report) condition(kind string) metav1.Condition {
	if c := apimeta.FindStatusCondition(r.status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func isReason(problem *promotion.Problem, reasons ...string) bool {
	return problem != nil && slices.Contains(reasons, problem.Reason)
}

// unreadable is what could not be read, and will be tried again.
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

// targetsTrail reports whether a target that was settled has to follow, such
// as one that was annotated after the promotion.
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
	case r.Rollout.Spec.BakeTime != nil && current.BakeStartTime != nil:
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

// troubles are what keeps the current release from being applied and healthy. While
// Flux is at work nothing does; that a target has failed, or that a check is
// Unhealthy, is said at once, and not at the deadline alone.
func (r report) troubles(current *v1alpha1.DeploymentHistoryEntry) []string {
	var all []string
	applied := r.condition(v1alpha1.TargetsAppliedCondition)
	if r.targetsTrail() && !r.decision.Overdue && (!current.State().Running() || applied.Reason == v1alpha1.TargetFailedReason) {
		all = append(all, applied.Message)
	}
	if sick := promotion.Unhealthy(r.Health.Checks); current.State() == v1alpha1.BakeDeploying && len(sick) > 0 {
		all = append(all, "Unhealthy: "+namesOf(sick))
	}
	return all
}

// allOf says each hold of a candidate.
func allOf(holds []promotion.Hold) string {
	messages := make([]string, 0, len(holds))
	for _, hold := range holds {
		messages = append(messages, hold.Message)
	}
	return truncate.Join(messages, "; ")
}

// story says in one line how the current release is doing and what the newest
// candidate waits for.
func (r report) story(current *v1alpha1.DeploymentHistoryEntry) string {
	parts := append([]string{r.headline(current)}, r.troubles(current)...)
	if considered := promotion.Considered(r.verdicts); len(considered) > 0 && !considered[0].Eligible() {
		parts = append(parts, waiting(considered[0]))
	}
	if r.Policy.Problem != nil {
		parts = append(parts, r.Policy.Problem.Message)
	}
	return strings.Join(parts, "; ")
}

// headline says how the current release is doing, and of one that failed how to go on.
func (r report) headline(current *v1alpha1.DeploymentHistoryEntry) string {
	var state string
	switch {
	case r.decision.Overdue:
		state = r.decision.Message
	case current.BakeStatusMessage != nil:
		state = *current.BakeStatusMessage
	}
	if current.State() == v1alpha1.BakeFailed {
		return failure(r.Rollout, r.Policy, state)
	}
	return about(current.Version.Tag, state)
}

func about(tag, state string) string {
	if state == "" {
		return tag
	}
	return tag + ": " + state
}

// longestCause is how many characters are kept of what has failed, so that how to go on
// is never cut off. The history has more of it.
const longestCause = 512

// failure says what has failed, why, and how to go on.
func failure(rollout *v1alpha1.Rollout, policy promotion.Policy, cause string) string {
	history := rollout.Status.History
	return about(history[0].Version.Tag, truncate.Text(cause, longestCause)) + "; " + promotion.WayOut(history, policy)
}

// waiting says what a candidate waits for. How to go on after a failure is said before.
func waiting(candidate promotion.Verdict) string {
	others := slices.DeleteFunc(slices.Clone(candidate.Holds), func(h promotion.Hold) bool {
		return h.Reason == v1alpha1.PreviousBakeFailedReason
	})
	if len(others) == 0 {
		return candidate.Release.Tag + " waits for that"
	}
	return fmt.Sprintf("%s waits: %s", candidate.Release.Tag, allOf(others))
}
