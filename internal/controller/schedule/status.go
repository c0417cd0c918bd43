// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/schedule"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// Size limits of lists in the status of a schedule, in bytes of JSON.
const (
	managedGatesLimit = 96 << 10
	activeRulesLimit  = 16 << 10
	// longestRule is the maximum length of the name of a rule.
	longestRule = 256
)

func everyItem(string) bool { return true }

// observation contains the results of a pass for a schedule.
type observation struct {
	gather.Schedule
	now      time.Time
	state    schedule.State
	problem  *verdict.Problem        // set if the schedule cannot be evaluated
	gates    []*v1alpha1.RolloutGate // those that exist
	rollouts int                     // how many it selects
	failures []error                 // of keepGates
}

// LogValues returns the findings as keys and values for a log line.
func (f observation) LogValues() []any {
	var conditions []metav1.Condition
	f.setReady(&conditions)
	ready := apimeta.FindStatusCondition(conditions, v1alpha1.ReadyCondition)
	return []any{"action", "KeepGates", "reason", ready.Reason, "message", ready.Message, "rollouts", f.rollouts, "gates", len(f.gates)}
}

// report stores the status if it has changed, and then emits an event for the change.
func (r *Reconciler) report(ctx context.Context, f observation, pass *announce.Pass) error {
	next := f.DeepCopyObject().(client.Object)
	status := gather.ScheduleOf(next).Status
	f.fill(status)
	if equality.Semantic.DeepEqual(f.Status, status) {
		return nil
	}
	patch := client.MergeFromWithOptions(f.Object, client.MergeFromWithOptimisticLock{})
	written, err := write.PatchStatus(ctx, r.Client, next, patch)
	if err != nil {
		return client.IgnoreNotFound(fmt.Errorf("write the status of %s: %w", f, err))
	}
	r.writes.Wrote(written)
	pass.Stored(true)
	r.announce(ctx, next, f.Status.Conditions, status.Conditions)
	return nil
}

func (f observation) fill(status *v1alpha1.RolloutScheduleStatus) {
	status.ObservedGeneration = f.GetGeneration()
	status.LastHandledReconcileAt = truncate.Message(f.GetAnnotations()[v1alpha1.ReconcileRequestAnnotation])
	status.Active = f.state.Active
	status.ActiveRules, status.ActiveExceptions = namesOf(f.state.Rules), namesOf(f.state.Exceptions)
	status.NextTransition = nil
	if !f.state.Next.IsZero() {
		status.NextTransition = &metav1.Time{Time: f.state.Next}
	}
	status.MatchingRollouts = int32(f.rollouts)
	status.ManagedGates = nil
	for _, gate := range f.gates {
		name := gate.Name
		if f.GetNamespace() == "" {
			name = gate.Namespace + "/" + gate.Name
		}
		status.ManagedGates = append(status.ManagedGates, name)
	}
	slices.Sort(status.ManagedGates)
	status.ManagedGates, _ = truncate.Items(status.ManagedGates, managedGatesLimit, everyItem)
	f.setReady(&status.Conditions)
}

// namesOf returns the names of rules, as far as they fit into a status.
func namesOf(rules []string) []string {
	var names []string
	for _, rule := range rules {
		names = append(names, truncate.Text(rule, longestRule))
	}
	names, _ = truncate.Items(names, activeRulesLimit, everyItem)
	return names
}

// setReady computes Ready, Reconciling and Stalled together, because kstatus reads them
// together. One that stays keeps the time of its transition: otherwise each pass would be a
// write.
func (f observation) setReady(conditions *[]metav1.Condition) {
	stays := ""
	set := func(kind string, status metav1.ConditionStatus, reason, message string) {
		apimeta.SetStatusCondition(conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: truncate.Message(message),
			ObservedGeneration: f.GetGeneration(), LastTransitionTime: metav1.NewTime(f.now),
		})
	}
	switch failed := describeFailures(f.failures); {
	case f.problem != nil:
		message := "closed: " + f.problem.Message
		stays = v1alpha1.StalledCondition
		set(stays, metav1.ConditionTrue, f.problem.Reason, message)
		set(v1alpha1.ReadyCondition, metav1.ConditionFalse, f.problem.Reason, message)
	case failed != "":
		message := f.state.String() + "; " + failed
		stays = v1alpha1.ReconcilingCondition
		set(stays, metav1.ConditionTrue, v1alpha1.ProgressingReason, message)
		set(v1alpha1.ReadyCondition, metav1.ConditionFalse, v1alpha1.GateWriteFailedReason, message)
	case f.state.Open:
		set(v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ScheduleOpenReason, f.state.String())
	default:
		set(v1alpha1.ReadyCondition, metav1.ConditionTrue, v1alpha1.ScheduleClosedReason, f.state.String())
	}
	for _, kind := range []string{v1alpha1.ReconcilingCondition, v1alpha1.StalledCondition} {
		if kind != stays {
			apimeta.RemoveStatusCondition(conditions, kind)
		}
	}
}

// describeFailures returns how many gates could not be written, and the first error. A concurrent
// write by another client is not a failure. Details of a network error are left out: they
// differ each time.
func describeFailures(failures []error) string {
	failures = slices.DeleteFunc(slices.Clone(failures), isBehind)
	if len(failures) == 0 {
		return ""
	}
	reason := failures[0].Error()
	if network := (net.Error)(nil); errors.As(failures[0], &network) {
		reason = "the API server did not answer"
	}
	return fmt.Sprintf("%s could not be written: %s", verdict.Count(len(failures), "gate"), reason)
}

// isBehind reports whether a write failed because the cache is behind.
func isBehind(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
