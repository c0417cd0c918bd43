// SPDX-License-Identifier: Apache-2.0

package rolloutstatus

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// setConditions sets the conditions. Each has one setter.
func setConditions(b basis) {
	setReleasesUpdated(b)
	setGatesPassing(b)
	setDeploymentBlocked(b)
	setBakeFailureDisabled(b)
	setRequestAccepted(b)
	setTargetsApplied(b)
	setUpstreamWithdrew(b)
	setRolledBack(b)
	setRunsUnapproved(b)
	setReady(b)
}

func (b basis) set(kind string, status metav1.ConditionStatus, reason, message string) {
	apimeta.SetStatusCondition(&b.status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: truncate.Message(message),
		ObservedGeneration: b.Rollout.Generation,
		LastTransitionTime: metav1.NewTime(b.Now),
	})
}

// keep sets a condition again, for the current generation.
func (b basis) keep(c metav1.Condition) { b.set(c.Type, c.Status, c.Reason, c.Message) }

func (b basis) remove(kinds ...string) {
	b.status.Conditions = slices.DeleteFunc(b.status.Conditions, func(c metav1.Condition) bool {
		return slices.Contains(kinds, c.Type)
	})
}

// setReleasesUpdated sets the condition True if the releases of the policy are known.
func setReleasesUpdated(b basis) {
	if problem := b.Policy.Problem; problem != nil {
		b.set(v1alpha1.ReleasesUpdatedCondition, metav1.ConditionFalse, problem.Reason, problem.Message)
		return
	}
	message := fmt.Sprintf("%s known from ImagePolicy %s", verdict.Count(len(b.status.AvailableReleases), "release"), b.Policy.Name)
	if b.decision.Full {
		message += ", as many as the status has room for"
	}
	if floating := releases.FloatingTag(b.Policy); floating != nil {
		b.set(v1alpha1.ReleasesUpdatedCondition, metav1.ConditionTrue, floating.Reason, message+"; "+floating.Message)
		return
	}
	b.set(v1alpha1.ReleasesUpdatedCondition, metav1.ConditionTrue, v1alpha1.ReleasesUpdatedReason, message)
}

// setGatesPassing sets the condition False only while gates, schedules or Environments
// hold every candidate.
func setGatesPassing(b basis) {
	considered := promotion.Considered(b.verdicts)
	passing := len(slices.DeleteFunc(slices.Clone(considered), promotion.Verdict.HeldByGates))
	switch bypassed := promotion.Bypassed(b.Rollout, b.verdicts); {
	case bypassed != "" && passing > 0:
		b.set(v1alpha1.GatesPassingCondition, metav1.ConditionTrue, v1alpha1.GatesBypassedReason,
			fmt.Sprintf("%s lets %s past every gate", v1alpha1.BypassGatesAnnotation, bypassed))
	case len(considered) == 0:
		b.set(v1alpha1.GatesPassingCondition, metav1.ConditionTrue, v1alpha1.NoReleaseCandidatesReason,
			"no newer release to gate")
	case passing > 0:
		b.set(v1alpha1.GatesPassingCondition, metav1.ConditionTrue, v1alpha1.AllGatesPassingReason,
			fmt.Sprintf("%d of %s let through", passing, verdict.Count(len(considered), "candidate")))
	default:
		holds := GateHolds(considered[0])
		b.set(v1alpha1.GatesPassingCondition, metav1.ConditionFalse, holds[0].Reason,
			releases.NameOf(considered[0].Release, b.Rollout.Current())+": "+allOf(holds))
	}
}

// GateHolds returns the holds that come from gates, schedules and Environments.
func GateHolds(v promotion.Verdict) []verdict.Hold {
	return slices.DeleteFunc(slices.Clone(v.Holds), func(hold verdict.Hold) bool {
		single := promotion.Verdict{Holds: []verdict.Hold{hold}}
		return !single.HeldByGates()
	})
}

// setUpstreamWithdrew sets the condition True while an environment before this one has
// something against the release that runs here. Going back is the choice of this
// environment. If an upstream cannot be read, the condition keeps its last state.
func setUpstreamWithdrew(b basis) {
	if b.decision.Action.Promotes() {
		b.remove(environmentsv1.UpstreamWithdrewCondition) // the next pass judges the new release
		return
	}
	previous := b.condition(environmentsv1.UpstreamWithdrewCondition)
	switch hold := b.Upstreams.Withdrawn(b.Rollout.Current()); {
	case hold != nil:
		b.set(environmentsv1.UpstreamWithdrewCondition, metav1.ConditionTrue, environmentsv1.UpstreamWithdrewReason,
			hold.Message+"; it still runs here: pin an older version to roll back here, too")
	case previous.Status != "" && !b.Upstreams.Known():
		b.keep(previous)
	default:
		b.remove(environmentsv1.UpstreamWithdrewCondition)
	}
}

// setRolledBack sets the condition True while the current promotion is a rollback, and
// False while a failure is not answered by one.
func setRolledBack(b basis) {
	switch back := b.rollback; {
	case back.Reason == "":
		b.remove(v1alpha1.RolledBackCondition)
	case back.Done:
		b.set(v1alpha1.RolledBackCondition, metav1.ConditionTrue, back.Reason, back.Message)
	default:
		b.set(v1alpha1.RolledBackCondition, metav1.ConditionFalse, back.Reason, back.Message)
	}
}

// setRunsUnapproved sets the condition True while content runs that nobody has approved,
// although gates asked for that. Nothing could keep Flux from pulling it.
func setRunsUnapproved(b basis) {
	current := b.Rollout.Current()
	if current == nil || current.Approval == nil || current.Approval.Outcome != v1alpha1.OutcomeMissing {
		b.remove(v1alpha1.RunsUnapprovedCondition)
		return
	}
	digest := releases.OrEmpty(current.Version.Digest)
	if digest != "" {
		digest = ", " + digest
	}
	b.set(v1alpha1.RunsUnapprovedCondition, metav1.ConditionTrue, v1alpha1.RunsUnapprovedReason,
		fmt.Sprintf("%s was pushed again, and nobody has approved what runs now%s: approve this content, or pin a release that has its approvals",
			current.Version.Tag, digest))
}

// setDeploymentBlocked sets the condition True while the health of the running release
// blocks automatic promotions.
func setDeploymentBlocked(b basis) {
	unhealthy := evidence.Unhealthy(b.Health.Checks)
	switch {
	case b.Rollout.Current() == nil && !isReason(b.Health.Problem, v1alpha1.InvalidSelectorReason, v1alpha1.AccessDeniedReason):
		b.set(v1alpha1.DeploymentBlockedCondition, metav1.ConditionFalse, v1alpha1.HealthChecksHealthyReason,
			"nothing was promoted yet whose health could matter")
	case b.decision.Problem == nil && b.Policy.Chosen(b.Rollout) != "":
		b.set(v1alpha1.DeploymentBlockedCondition, metav1.ConditionFalse, v1alpha1.ManualDeploymentReason,
			"does not apply: the version was chosen manually, which bypasses HealthChecks")
	case b.Rollout.UnblocksFailed():
		b.set(v1alpha1.DeploymentBlockedCondition, metav1.ConditionFalse, v1alpha1.ManualDeploymentReason,
			"does not apply: the next promotion bypasses HealthChecks, as requested")
	case b.Health.Problem != nil:
		b.set(v1alpha1.DeploymentBlockedCondition, metav1.ConditionTrue, b.Health.Problem.Reason, b.Health.Problem.Message)
	case len(unhealthy) > 0:
		b.set(v1alpha1.DeploymentBlockedCondition, metav1.ConditionTrue, v1alpha1.UnhealthyHealthChecksReason,
			fmt.Sprintf("automatic promotions wait: %d of %s Unhealthy: %s", len(unhealthy), verdict.Count(len(b.Health.Checks), "HealthCheck"), namesOf(unhealthy)))
	case b.Rollout.Spec.HealthCheckSelector != nil && b.Rollout.Spec.HealthCheckSelector.LabelSelector() == nil:
		b.set(v1alpha1.DeploymentBlockedCondition, metav1.ConditionFalse, v1alpha1.HealthChecksHealthyReason,
			"spec.healthCheckSelector selects no HealthCheck at all: give it a selector or matchLabels, empty for all")
	default:
		b.set(v1alpha1.DeploymentBlockedCondition, metav1.ConditionFalse, v1alpha1.HealthChecksHealthyReason,
			"no selected HealthCheck is Unhealthy")
	}
}

// setBakeFailureDisabled sets the condition True while the current promotion cannot fail.
func setBakeFailureDisabled(b basis) {
	switch history := b.status.History; {
	case len(history) == 0:
		b.remove(v1alpha1.BakeFailureDisabledCondition)
	case history[0].Recovery != "":
		b.set(v1alpha1.BakeFailureDisabledCondition, metav1.ConditionTrue, string(history[0].Recovery), promotion.RecoveryMessage(history))
	default:
		b.set(v1alpha1.BakeFailureDisabledCondition, metav1.ConditionFalse, v1alpha1.NormalReason,
			"the promotion can fail by its HealthChecks and its deadline")
	}
}

// setRequestAccepted reports requests by annotation that could not be fulfilled. The
// answer stays until the next promotion or retry.
func setRequestAccepted(b basis) {
	answers, rejected := b.decision.Answers, b.decision.Declined
	previous := b.condition(v1alpha1.RequestAcceptedCondition)
	switch {
	case len(answers) > 0:
		last := answers[len(answers)-1]
		b.set(v1alpha1.RequestAcceptedCondition, metav1.ConditionFalse, last.Reason, last.Message)
	case rejected != nil:
		b.set(v1alpha1.RequestAcceptedCondition, metav1.ConditionFalse, rejected.Reason, rejected.Message)
	case b.decision.Action.Promotes(), b.decision.Action == promotion.Retry, onlyWhileAsked[previous.Reason]:
		b.remove(v1alpha1.RequestAcceptedCondition)
	case previous.Status != "":
		b.keep(previous)
	}
}

// onlyWhileAsked contains the reasons of answers that stay only until the request is
// removed or has an effect.
var onlyWhileAsked = map[string]bool{
	v1alpha1.InvalidRequestReason: true, v1alpha1.NoSuchCandidateReason: true,
}

func namesOf(checks []v1alpha1.HealthCheck) string {
	names := make([]string, 0, len(checks))
	for i := range checks {
		names = append(names, checks[i].Namespace+"/"+checks[i].Name)
	}
	return truncate.List(names)
}

// setTargetsApplied reports on all targets.
func setTargetsApplied(b basis) {
	applied := b.targetsApplied()
	b.set(applied.Type, applied.Status, applied.Reason, applied.Message)
}

// targetsApplied returns what there is to say of all targets, the worst first. It does not
// count the applied ones: the number would be outdated at the next write.
func (b basis) targetsApplied() metav1.Condition {
	current := b.Rollout.Current()
	byState := map[v1alpha1.TargetState][]string{}
	for _, t := range b.status.Targets {
		byState[t.State] = append(byState[t.State], fmt.Sprintf("%s %s: %s", t.Kind, t.Name, t.Message))
	}
	status, reason, message := metav1.ConditionFalse, v1alpha1.TargetsPendingReason, ""
	switch {
	case b.Targets.Problem != nil:
		status, reason, message = metav1.ConditionUnknown, v1alpha1.RolloutFailedReason, b.Targets.Problem.Message
	case current == nil:
		reason, message = beforeFirstRelease(b.Input)
	case len(b.status.Targets) == 0:
		status, reason = metav1.ConditionTrue, v1alpha1.NoTargetsReason
		message = "no Flux object is annotated with this Rollout"
	case len(byState[v1alpha1.TargetConflict]) > 0:
		reason, message = b.conflictReason(), truncate.Join(byState[v1alpha1.TargetConflict], "; ")
	case len(byState[v1alpha1.TargetFailed]) > 0:
		reason, message = v1alpha1.TargetFailedReason, truncate.Join(byState[v1alpha1.TargetFailed], "; ")
	case len(byState[v1alpha1.TargetPending]) > 0:
		message = fmt.Sprintf("waiting for Flux to apply %s to %s%s", current.Version.Tag,
			verdict.Count(len(b.status.Targets), "target"), pendingBecause(b.status.Targets))
	default:
		status, reason = metav1.ConditionTrue, v1alpha1.TargetsAppliedReason
		message = truncate.Join(append([]string{b.appliedTo(current.Version.Tag)}, notFollowed(b.status.Targets)...), "; ")
	}
	return metav1.Condition{Type: v1alpha1.TargetsAppliedCondition, Status: status, Reason: reason, Message: truncate.Message(message)}
}

// conflictReason returns HistoryOutdatedReason if a target shows that, and
// DigestMismatchReason if every conflict is only content other than the release. Otherwise
// it returns TargetConflictReason.
func (b basis) conflictReason() string {
	other := func(t content.Target) bool { return t.State == v1alpha1.TargetConflict && !t.Mismatch }
	switch {
	case b.Targets.Outdate(b.status.History):
		return v1alpha1.HistoryOutdatedReason
	case slices.ContainsFunc(b.Targets.All, other):
		return v1alpha1.TargetConflictReason
	}
	return v1alpha1.DigestMismatchReason
}

// pendingBecause returns what keeps pending targets waiting, if that is known.
func pendingBecause(targets []v1alpha1.TargetStatus) string {
	var text strings.Builder
	for _, t := range targets {
		switch {
		case content.NotTried(t.State, t.Reason):
			fmt.Fprintf(&text, "; %s %s: %s", t.Kind, t.Name, t.Message)
		case t.State == v1alpha1.TargetPending && t.Message != "":
			fmt.Fprintf(&text, "; %s %s %s", t.Kind, t.Name, t.Message)
		}
	}
	return text.String()
}

// appliedTo says which version is applied. It claims no more than that it is pulled if
// nothing is known to apply it.
func (b basis) appliedTo(version string) string {
	targets := verdict.Count(len(b.status.Targets), "target")
	if b.Targets.PulledOnly() == len(b.status.Targets) {
		return fmt.Sprintf("%s pulled %s", targets, version)
	}
	return fmt.Sprintf("applied %s to %s", version, targets)
}

// notFollowed returns what is said of OCIRepositories whose consumers are not followed.
func notFollowed(targets []v1alpha1.TargetStatus) []string {
	var all []string
	for _, t := range targets {
		if t.State == v1alpha1.TargetApplied && t.Message != "" {
			all = append(all, fmt.Sprintf("%s %s: %s", t.Kind, t.Name, t.Message))
		}
	}
	return all
}
