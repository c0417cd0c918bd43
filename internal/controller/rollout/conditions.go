// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// setConditions sets the conditions. Each has one setter.
func setConditions(r report) {
	setReleasesUpdated(r)
	setGatesPassing(r)
	setDeploymentBlocked(r)
	setBakeFailureDisabled(r)
	setRequestAccepted(r)
	setTargetsApplied(r)
	setUpstreamWithdrew(r)
	setRolledBack(r)
	setReady(r)
}

func (r report) set(kind string, status metav1.ConditionStatus, reason, message string) {
	apimeta.SetStatusCondition(&r.status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: truncate.Message(message),
		ObservedGeneration: r.Rollout.Generation,
		LastTransitionTime: metav1.NewTime(r.Now),
	})
}

// keep sets a condition again, for the current generation.
func (r report) keep(c metav1.Condition) { r.set(c.Type, c.Status, c.Reason, c.Message) }

func (r report) remove(kinds ...string) {
	r.status.Conditions = slices.DeleteFunc(r.status.Conditions, func(c metav1.Condition) bool {
		return slices.Contains(kinds, c.Type)
	})
}

// setReleasesUpdated sets the condition True if the releases of the policy are known.
func setReleasesUpdated(r report) {
	if problem := r.Policy.Problem; problem != nil {
		r.set(v1alpha1.ReleasesUpdatedCondition, metav1.ConditionFalse, problem.Reason, problem.Message)
		return
	}
	message := fmt.Sprintf("%s known from ImagePolicy %s", promotion.Count(len(r.status.AvailableReleases), "release"), r.Policy.Name)
	if r.decision.Full {
		message += ", as many as the status has room for"
	}
	if floating := promotion.FloatingTag(r.Policy); floating != nil {
		r.set(v1alpha1.ReleasesUpdatedCondition, metav1.ConditionTrue, floating.Reason, message+"; "+floating.Message)
		return
	}
	r.set(v1alpha1.ReleasesUpdatedCondition, metav1.ConditionTrue, v1alpha1.ReleasesUpdatedReason, message)
}

// setGatesPassing sets the condition False only while gates, schedules or Environments
// hold every candidate.
func setGatesPassing(r report) {
	considered := promotion.Considered(r.verdicts)
	passing := len(slices.DeleteFunc(slices.Clone(considered), promotion.Verdict.HeldByGates))
	switch bypassed := promotion.Bypassed(r.Input, r.verdicts); {
	case bypassed != "" && passing > 0:
		r.set(v1alpha1.GatesPassingCondition, metav1.ConditionTrue, v1alpha1.GatesBypassedReason,
			fmt.Sprintf("%s lets %s past every gate", v1alpha1.BypassGatesAnnotation, bypassed))
	case len(considered) == 0:
		r.set(v1alpha1.GatesPassingCondition, metav1.ConditionTrue, v1alpha1.NoReleaseCandidatesReason,
			"no newer release to gate")
	case passing > 0:
		r.set(v1alpha1.GatesPassingCondition, metav1.ConditionTrue, v1alpha1.AllGatesPassingReason,
			fmt.Sprintf("%d of %s let through", passing, promotion.Count(len(considered), "candidate")))
	default:
		holds := gateHolds(considered[0])
		r.set(v1alpha1.GatesPassingCondition, metav1.ConditionFalse, holds[0].Reason,
			considered[0].Release.Tag+": "+allOf(holds))
	}
}

// gateHolds returns the holds that come from gates, schedules and Environments.
func gateHolds(v promotion.Verdict) []promotion.Hold {
	return slices.DeleteFunc(slices.Clone(v.Holds), func(hold promotion.Hold) bool {
		single := promotion.Verdict{Holds: []promotion.Hold{hold}}
		return !single.HeldByGates()
	})
}

// setUpstreamWithdrew sets the condition True while an environment before this one has
// something against the release that runs here. Going back is the choice of this
// environment. What upstreams that cannot be read have said before stays.
func setUpstreamWithdrew(r report) {
	if r.decision.Action.Promotes() {
		r.remove(environmentsv1.UpstreamWithdrewCondition) // the next pass judges the new release
		return
	}
	standing := r.condition(environmentsv1.UpstreamWithdrewCondition)
	switch hold := promotion.WithdrawnUpstream(r.Input); {
	case hold != nil:
		r.set(environmentsv1.UpstreamWithdrewCondition, metav1.ConditionTrue, environmentsv1.UpstreamWithdrewReason,
			hold.Message+"; it still runs here: pin an older version to go back, too")
	case standing.Status != "" && !r.Upstreams.Known():
		r.keep(standing)
	default:
		r.remove(environmentsv1.UpstreamWithdrewCondition)
	}
}

// setRolledBack sets the condition True while the current promotion is a rollback, and
// False while a failure is not answered by one.
func setRolledBack(r report) {
	switch back := r.rollback; {
	case back.Reason == "":
		r.remove(v1alpha1.RolledBackCondition)
	case back.Done:
		r.set(v1alpha1.RolledBackCondition, metav1.ConditionTrue, back.Reason, back.Message)
	default:
		r.set(v1alpha1.RolledBackCondition, metav1.ConditionFalse, back.Reason, back.Message)
	}
}

// setDeploymentBlocked sets the condition True while the health of the running release
// blocks automatic promotions.
func setDeploymentBlocked(r report) {
	unhealthy := promotion.Unhealthy(r.Health.Checks)
	switch {
	case r.Rollout.Current() == nil && !isReason(r.Health.Problem, v1alpha1.InvalidSelectorReason, v1alpha1.AccessDeniedReason):
		r.set(v1alpha1.DeploymentBlockedCondition, metav1.ConditionFalse, v1alpha1.HealthChecksHealthyReason,
			"nothing was promoted yet whose health could matter")
	case r.decision.Problem == nil && r.Rollout.ChosenManually() != "":
		r.set(v1alpha1.DeploymentBlockedCondition, metav1.ConditionFalse, v1alpha1.ManualDeploymentReason,
			"does not apply: the version was chosen manually, which bypasses HealthChecks")
	case r.Rollout.UnblocksFailed():
		r.set(v1alpha1.DeploymentBlockedCondition, metav1.ConditionFalse, v1alpha1.ManualDeploymentReason,
			"does not apply: the next promotion bypasses HealthChecks, as requested")
	case r.Health.Problem != nil:
		r.set(v1alpha1.DeploymentBlockedCondition, metav1.ConditionTrue, r.Health.Problem.Reason, r.Health.Problem.Message)
	case len(unhealthy) > 0:
		r.set(v1alpha1.DeploymentBlockedCondition, metav1.ConditionTrue, v1alpha1.UnhealthyHealthChecksReason,
			fmt.Sprintf("automatic promotions wait: %d of %s Unhealthy: %s", len(unhealthy), promotion.Count(len(r.Health.Checks), "HealthCheck"), namesOf(unhealthy)))
	case r.Rollout.Spec.HealthCheckSelector != nil && r.Rollout.Spec.HealthCheckSelector.LabelSelector() == nil:
		r.set(v1alpha1.DeploymentBlockedCondition, metav1.ConditionFalse, v1alpha1.HealthChecksHealthyReason,
			"spec.healthCheckSelector selects no HealthCheck at all: give it a selector or matchLabels, empty for all")
	default:
		r.set(v1alpha1.DeploymentBlockedCondition, metav1.ConditionFalse, v1alpha1.HealthChecksHealthyReason,
			"no selected HealthCheck is Unhealthy")
	}
}

// setBakeFailureDisabled sets the condition True while the current promotion cannot fail.
func setBakeFailureDisabled(r report) {
	switch history := r.status.History; {
	case len(history) == 0:
		r.remove(v1alpha1.BakeFailureDisabledCondition)
	case history[0].Recovery != "":
		r.set(v1alpha1.BakeFailureDisabledCondition, metav1.ConditionTrue, string(history[0].Recovery), promotion.RecoveryMessage(history))
	default:
		r.set(v1alpha1.BakeFailureDisabledCondition, metav1.ConditionFalse, v1alpha1.NormalReason,
			"the promotion can fail by its HealthChecks and its deadline")
	}
}

// setRequestAccepted reports requests by annotation that could not be fulfilled. The
// answer stays until the next promotion or retry.
func setRequestAccepted(r report) {
	answers, rejected := r.decision.Answers, r.decision.Declined
	standing := r.condition(v1alpha1.RequestAcceptedCondition)
	switch {
	case len(answers) > 0:
		last := answers[len(answers)-1]
		r.set(v1alpha1.RequestAcceptedCondition, metav1.ConditionFalse, last.Reason, last.Message)
	case rejected != nil:
		r.set(v1alpha1.RequestAcceptedCondition, metav1.ConditionFalse, rejected.Reason, rejected.Message)
	case r.decision.Action.Promotes(), r.decision.Action == promotion.Retry, onlyWhileAsked[standing.Reason]:
		r.remove(v1alpha1.RequestAcceptedCondition)
	case standing.Status != "":
		r.keep(standing)
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
func setTargetsApplied(r report) {
	applied := r.targetsApplied()
	r.set(applied.Type, applied.Status, applied.Reason, applied.Message)
}

// targetsApplied returns what there is to say of all targets, the worst first. It does not
// count the applied ones: the number would be outdated at the next write.
func (r report) targetsApplied() metav1.Condition {
	current := r.Rollout.Current()
	byState := map[v1alpha1.TargetState][]string{}
	for _, t := range r.status.Targets {
		byState[t.State] = append(byState[t.State], fmt.Sprintf("%s %s: %s", t.Kind, t.Name, t.Message))
	}
	status, reason, message := metav1.ConditionFalse, v1alpha1.TargetsPendingReason, ""
	switch {
	case r.Targets.Problem != nil:
		status, reason, message = metav1.ConditionUnknown, v1alpha1.RolloutFailedReason, r.Targets.Problem.Message
	case current == nil:
		reason, message = beforeFirstRelease(r.Input)
	case len(r.status.Targets) == 0:
		status, reason = metav1.ConditionTrue, v1alpha1.NoTargetsReason
		message = "no Flux object is annotated with this Rollout"
	case len(byState[v1alpha1.TargetConflict]) > 0:
		reason, message = r.conflictReason(), truncate.Join(byState[v1alpha1.TargetConflict], "; ")
	case len(byState[v1alpha1.TargetFailed]) > 0:
		reason, message = v1alpha1.TargetFailedReason, truncate.Join(byState[v1alpha1.TargetFailed], "; ")
	case len(byState[v1alpha1.TargetPending]) > 0:
		message = fmt.Sprintf("waiting for Flux to apply %s to %s%s", current.Version.Tag,
			promotion.Count(len(r.status.Targets), "target"), pendingBecause(r.status.Targets))
	default:
		status, reason = metav1.ConditionTrue, v1alpha1.TargetsAppliedReason
		message = truncate.Join(append([]string{r.appliedTo(current.Version.Tag)}, notFollowed(r.status.Targets)...), "; ")
	}
	return metav1.Condition{Type: v1alpha1.TargetsAppliedCondition, Status: status, Reason: reason, Message: truncate.Message(message)}
}

// conflictReason returns HistoryOutdatedReason if a target shows that, and
// DigestMismatchReason if every conflict is only content other than the release. Otherwise
// it returns TargetConflictReason.
func (r report) conflictReason() string {
	other := func(t promotion.Target) bool { return t.State == v1alpha1.TargetConflict && !t.Mismatch }
	switch {
	case r.Targets.Outdate(r.status.History):
		return v1alpha1.HistoryOutdatedReason
	case slices.ContainsFunc(r.Targets.All, other):
		return v1alpha1.TargetConflictReason
	}
	return v1alpha1.DigestMismatchReason
}

// pendingBecause returns what keeps pending targets waiting, if that is known.
func pendingBecause(targets []v1alpha1.TargetStatus) string {
	var text strings.Builder
	for _, t := range targets {
		switch {
		case promotion.NotTried(t.State, t.Reason):
			fmt.Fprintf(&text, "; %s %s: %s", t.Kind, t.Name, t.Message)
		case t.State == v1alpha1.TargetPending && t.Message != "":
			fmt.Fprintf(&text, "; %s %s %s", t.Kind, t.Name, t.Message)
		}
	}
	return text.String()
}

// appliedTo says which version is applied. It claims no more than that it is pulled if
// nothing is known to apply it.
func (r report) appliedTo(version string) string {
	targets := promotion.Count(len(r.status.Targets), "target")
	if r.Targets.PulledOnly() == len(r.status.Targets) {
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
