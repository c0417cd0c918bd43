// SPDX-License-Identifier: Apache-2.0

package rolloutstatus

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// setReady computes Ready, Reconciling and Stalled together, because kstatus reads them
// together. Stalled is True while a user must act, and Reconciling while something
// expected has not happened yet. Ready stays True during a running promotion, to keep
// dashboards and alerts quiet, unless its release is not healthy or it takes too long.
func setReady(b basis) {
	current := b.Rollout.Current()
	if problem := b.stalling(); problem != nil {
		b.stall(problem.Reason, problem.Message)
		return
	}
	if problem := b.unreadable(); problem != nil {
		b.wait(metav1.ConditionFalse, problem.Reason, problem.Message)
		return
	}
	switch {
	case current == nil && b.decision.Reason == v1alpha1.FirstReleaseNotAppliedReason:
		b.waitForFirst()
	case current == nil:
		b.waitForFirstRelease()
	case current.State() == v1alpha1.BakeFailed:
		b.stall(v1alpha1.BakeTimeFailedReason, b.summary(current))
	case b.rollback.Reason == v1alpha1.RollbackOverdueReason:
		b.stall(v1alpha1.RollbackOverdueReason, b.rollback.Message)
	case current.State().Running():
		b.run(current)
	case b.targetsTrail():
		b.trail(current)
	default:
		b.remove(v1alpha1.StalledCondition)
		b.await(current)
		b.set(v1alpha1.ReadyCondition, metav1.ConditionTrue, b.successReason(current), b.summary(current))
	}
}

// run reports a promotion that is under way.
func (b basis) run(current *v1alpha1.DeploymentHistoryEntry) {
	d := b.decision
	switch unhealthy := evidence.Unhealthy(b.Health.Checks); {
	case !d.LateSince.IsZero():
		b.wait(metav1.ConditionFalse, v1alpha1.BakeOverdueReason,
			fmt.Sprintf("%s; it was due at %s", b.summary(current), d.LateSince.UTC().Format(time.RFC3339)))
	case d.Overdue && (d.Unproven || len(unhealthy) > 0):
		b.wait(metav1.ConditionFalse, v1alpha1.HealthNotProvenReason, b.summary(current))
	default:
		b.wait(metav1.ConditionTrue, runningReason(current), b.summary(current))
	}
}

// await reports what a user chose that waits for approvals. What runs is not affected.
func (b basis) await(current *v1alpha1.DeploymentHistoryEntry) {
	if b.awaited == nil {
		b.remove(v1alpha1.ReconcilingCondition)
		return
	}
	b.set(v1alpha1.ReconcilingCondition, metav1.ConditionTrue, b.awaited.Holds[0].Reason, waiting(*b.awaited, current))
}

func runningReason(current *v1alpha1.DeploymentHistoryEntry) string {
	if current.State() == v1alpha1.BakeDeploying && current.LastRetryTimestamp != nil {
		return v1alpha1.BakeTimeRetryingReason
	}
	return v1alpha1.RolloutSucceededReason
}

func (b basis) stall(reason, message string) {
	b.remove(v1alpha1.ReconcilingCondition)
	b.set(v1alpha1.StalledCondition, metav1.ConditionTrue, reason, message)
	b.set(v1alpha1.ReadyCondition, metav1.ConditionFalse, reason, message)
}

func (b basis) wait(ready metav1.ConditionStatus, reason, message string) {
	b.remove(v1alpha1.StalledCondition)
	b.set(v1alpha1.ReconcilingCondition, metav1.ConditionTrue, v1alpha1.ProgressingReason, message)
	b.set(v1alpha1.ReadyCondition, ready, reason, message)
}

// waitForFirst waits until the targets have applied the release of the first entry. How
// long Flux has tried is not a change.
func (b basis) waitForFirst() {
	message := truncate.Message(b.decision.Message)
	if before := b.condition(v1alpha1.ReadyCondition); before.Reason == b.decision.Reason && truncate.SameButDurations(before.Message, message) {
		message = before.Message
	}
	b.wait(metav1.ConditionFalse, b.decision.Reason, message)
}

// trail waits for targets that have to follow. If a user has marked the promotion as
// successful, the reason stays: other clients read it.
func (b basis) trail(current *v1alpha1.DeploymentHistoryEntry) {
	if b.markedSuccessful() {
		b.wait(metav1.ConditionTrue, v1alpha1.DeploymentMarkedSuccessfulReason, b.summary(current))
		return
	}
	b.wait(metav1.ConditionFalse, b.targetsApplied().Reason, b.summary(current))
}

// markedManually are the beginnings of the messages that versions of the dashboard write into
// the entry of a promotion that a user marks as successful.
var markedManually = []string{"Manually marked as successful", "Deployment manually marked as successful"}

// markedSuccessful reports whether a user marked the current promotion as successful in
// the dashboard, which is another client of this API: it shows that only in a text and in
// the reason of Ready. The condition may have changed since then, for example while
// something could not be read. The entry is final and still shows it. Only Ready depends
// on it.
func (b basis) markedSuccessful() bool {
	current := b.Rollout.Current()
	stored := current.State() == v1alpha1.BakeSucceeded && current.BakeStatusMessage != nil &&
		slices.ContainsFunc(markedManually, func(text string) bool { return strings.HasPrefix(*current.BakeStatusMessage, text) })
	ready := b.condition(v1alpha1.ReadyCondition).Reason == v1alpha1.DeploymentMarkedSuccessfulReason
	return (stored || ready) && !b.decision.Action.Promotes()
}

// stalling returns the problem that a user must fix, if any.
func (b basis) stalling() *verdict.Problem {
	switch {
	case b.decision.Problem != nil:
		return b.decision.Problem
	case isReason(b.Health.Problem, v1alpha1.InvalidSelectorReason, v1alpha1.AccessDeniedReason):
		return b.Health.Problem
	case isReason(b.Policy.Problem, v1alpha1.InvalidImagePolicyReason, v1alpha1.AccessDeniedReason):
		return b.Policy.Problem
	}
	if applied := b.targetsApplied(); slices.Contains(conflicts, applied.Reason) {
		return &verdict.Problem{Reason: applied.Reason, Message: applied.Message}
	}
	return nil
}

// conflicts contains the reasons for which targets cannot apply the version.
var conflicts = []string{v1alpha1.TargetConflictReason, v1alpha1.DigestMismatchReason, v1alpha1.HistoryOutdatedReason}

// condition returns a condition as it was stored or set in this pass, or the zero
// condition. Nothing but conditions may depend on it.
func (b basis) condition(kind string) metav1.Condition {
	if c := apimeta.FindStatusCondition(b.status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func isReason(problem *verdict.Problem, reasons ...string) bool {
	return problem != nil && slices.Contains(reasons, problem.Reason)
}

// unreadable returns what could not be read and will be tried again.
func (b basis) unreadable() *verdict.Problem {
	if b.Policy.Blocking {
		return &verdict.Problem{Reason: v1alpha1.RolloutFailedReason, Message: b.Policy.Problem.Message}
	}
	for _, problem := range []*verdict.Problem{b.Targets.Problem, b.Gates.Problem, b.Health.Problem} {
		if problem != nil {
			return problem
		}
	}
	return nil
}

// targetsTrail reports whether a target has not applied the version yet, such as one that
// was annotated after the promotion.
func (b basis) targetsTrail() bool {
	for _, t := range b.status.Targets {
		if t.State != v1alpha1.TargetApplied {
			return true
		}
	}
	return false
}

func (b basis) successReason(current *v1alpha1.DeploymentHistoryEntry) string {
	switch {
	case b.markedSuccessful():
		return v1alpha1.DeploymentMarkedSuccessfulReason
	case b.Rollout.Spec.BakeTimeOf(current) != nil && current.BakeStartTime != nil:
		return v1alpha1.BakeTimePassedReason
	}
	return v1alpha1.RolloutSucceededReason
}

func (b basis) noReleases() string {
	message := fmt.Sprintf("ImagePolicy %s names no release yet", b.Policy.Name)
	if latest := b.Policy.Latest; latest != nil && !b.Policy.Order.Admits(latest.Tag) {
		message = fmt.Sprintf("ImagePolicy %s still names %s, which its range or filter does not admit: wait for Flux to look again, or correct them",
			b.Policy.Name, latest.Tag)
	}
	if b.Policy.Problem != nil {
		message += ": " + b.Policy.Problem.Message
	}
	return message
}

// isHindered reports whether it is known what keeps a target from being applied.
func (b basis) isHindered() bool {
	return slices.ContainsFunc(b.status.Targets, func(t v1alpha1.TargetStatus) bool {
		return t.State == v1alpha1.TargetPending && t.Reason != ""
	})
}

// troubles returns what keeps the current release from being applied and healthy. While
// Flux is working, that is nothing. A target that has failed or cannot go on, or an
// Unhealthy check, is reported at once, not only at the deadline.
func (b basis) troubles(current *v1alpha1.DeploymentHistoryEntry) []string {
	var all []string
	applied := b.targetsApplied()
	if b.targetsTrail() && !b.decision.Overdue && (!current.State().Running() || applied.Reason == v1alpha1.TargetFailedReason || b.isHindered()) {
		all = append(all, applied.Message)
	}
	if unhealthy := evidence.Unhealthy(b.Health.Checks); current.State().Running() && len(unhealthy) > 0 {
		all = append(all, "Unhealthy: "+namesOf(unhealthy))
	}
	return all
}

// allOf returns the messages of the holds.
func allOf(holds []verdict.Hold) string {
	messages := make([]string, 0, len(holds))
	for _, hold := range holds {
		messages = append(messages, hold.Message)
	}
	return truncate.Join(messages, "; ")
}

// summary returns one line about the current release and what the newest candidate waits
// for.
func (b basis) summary(current *v1alpha1.DeploymentHistoryEntry) string {
	parts := append([]string{b.headline(current)}, b.troubles(current)...)
	if b.awaited != nil {
		parts = append(parts, waiting(*b.awaited, current))
	} else if considered := promotion.Considered(b.verdicts); len(considered) > 0 && !considered[0].Eligible() {
		parts = append(parts, waiting(considered[0], b.Rollout.Current()))
	}
	if b.Policy.Problem != nil {
		parts = append(parts, b.Policy.Problem.Message)
	}
	if current.State() != v1alpha1.BakeDeploying { // before, progress of targets is not stored
		parts = append(parts, notFollowed(b.status.Targets)...)
	}
	return strings.Join(parts, "; ")
}

// headline returns the state of the current release and, if it failed, how to continue.
func (b basis) headline(current *v1alpha1.DeploymentHistoryEntry) string {
	state := promotion.StateMessage(b.Rollout)
	if b.decision.Overdue {
		state = b.decision.Message
	}
	if current.State() == v1alpha1.BakeFailed {
		return Failure(b.Input, state)
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

// Failure returns what has failed, why, and how to continue.
func Failure(in promotion.Input, cause string) string {
	return about(in.Rollout.Current().Version.Tag, truncate.Text(cause, longestCause)) + "; " + promotion.WayOut(in)
}

// waiting returns what a candidate waits for. The headline explains how to go on after a
// failure.
func waiting(candidate promotion.Verdict, current *v1alpha1.DeploymentHistoryEntry) string {
	name := releases.NameOf(candidate.Release, current)
	others := slices.DeleteFunc(slices.Clone(candidate.Holds), func(h verdict.Hold) bool {
		return h.Reason == v1alpha1.PreviousBakeFailedReason
	})
	if len(others) == 0 {
		return name + " waits for that"
	}
	return verdict.Waiting(name, allOf(others))
}
