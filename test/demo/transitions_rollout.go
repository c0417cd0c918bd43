// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// narrateRollout describes the newest history entry, its evidence, and what the next
// release waits for.
func narrateRollout(before, after *v1alpha1.Rollout) []line {
	lines := narrateApplied(before, after)
	lines = append(lines, narrateEntry(before.Current(), after.Current())...)
	return append(lines, narrateWaiting(before, after)...)
}

func narrateEntry(before, after *v1alpha1.DeploymentHistoryEntry) []line {
	switch {
	case after == nil:
		return nil
	case before == nil || idOf(before) != idOf(after):
		return []line{
			says(rollout, plain, "promotes %s (number %d): %s", after.Version.Tag, idOf(after), reported(after.Message)),
			says(rollout, plain, "%s is %s: %s", after.Version.Tag, after.State(), reported(after.BakeStatusMessage)),
		}
	case before.State() != after.State():
		return []line{says(rollout, toneOf(after.State()), "%s is %s: %s",
			after.Version.Tag, after.State(), reported(after.BakeStatusMessage))}
	}
	return nil
}

func toneOf(state v1alpha1.BakeStatus) tone {
	switch state {
	case v1alpha1.BakeSucceeded:
		return good
	case v1alpha1.BakeFailed:
		return bad
	case v1alpha1.BakeDeploying, v1alpha1.BakeInProgress, v1alpha1.BakeCancelled:
	}
	return plain
}

// narrateApplied reports when all targets report the release, and when a target fails.
func narrateApplied(before, after *v1alpha1.Rollout) []line {
	was, is := condition(before, v1alpha1.TargetsAppliedCondition), condition(after, v1alpha1.TargetsAppliedCondition)
	switch {
	case is.Status == was.Status && is.Reason == was.Reason:
		return nil
	case is.Status == metav1.ConditionTrue:
		return []line{says(rollout, plain, "sees it applied: %s", is.Message)}
	case is.Reason == v1alpha1.TargetFailedReason, is.Reason == v1alpha1.TargetConflictReason:
		return []line{says(rollout, bad, "%s: %s", is.Reason, is.Message)}
	}
	return nil
}

// narrateWaiting describes the part of the Ready message that is not about the bake of
// the current release: what the next release waits for, and errors.
func narrateWaiting(before, after *v1alpha1.Rollout) []line {
	is := beyondBake(after)
	if is == "" || is == beyondBake(before) {
		return nil
	}
	ready := condition(after, v1alpha1.ReadyCondition)
	return []line{says(rollout, plain, "%s (Ready=%s, %s)", is, ready.Status, ready.Reason)}
}

func beyondBake(r *v1alpha1.Rollout) string {
	message := condition(r, v1alpha1.ReadyCondition).Message
	if entry := r.Current(); entry != nil {
		message = strings.TrimPrefix(message, entry.Version.Tag+": "+reported(entry.BakeStatusMessage))
	}
	return strings.TrimPrefix(message, "; ")
}

func condition(r *v1alpha1.Rollout, kind string) metav1.Condition {
	if c := apimeta.FindStatusCondition(r.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func idOf(entry *v1alpha1.DeploymentHistoryEntry) int64 {
	if entry.ID == nil {
		return 0
	}
	return *entry.ID
}

// reported returns the text of an optional field.
func reported(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func narrateHealthCheck(before, after *v1alpha1.HealthCheck) []line {
	is := after.Status
	if is.Status == "" || is.Status == before.Status.Status && reported(is.Message) == reported(before.Status.Message) {
		return nil
	}
	t := plain
	switch is.Status {
	case v1alpha1.HealthStatusHealthy:
		t = good
	case v1alpha1.HealthStatusUnhealthy:
		t = bad
	case v1alpha1.HealthStatusPending:
	}
	return []line{says(healthCheck, t, "%s: %s", is.Status, reported(is.Message))}
}

// narrateQuarantine describes the newest failure of a release.
func narrateQuarantine(before, after *v1alpha1.ReleaseQuarantine) []line {
	is := after.Status
	if is.Phase == before.Status.Phase || len(is.Failures) == 0 {
		return nil
	}
	return []line{says(quarantined, bad, "%s: %s failed on %s",
		is.Phase, strings.Join(after.Spec.Tags, ", "), is.Failures[0].Rollout.Name)}
}
