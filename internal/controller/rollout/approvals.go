// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/approvals"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// +kubebuilder:rbac:groups=kuberik.com,resources=rolloutapprovals,verbs=list;watch;delete
// +kubebuilder:rbac:groups=kuberik.com,resources=clusterrolloutgates,verbs=list;watch

// WatchApprovals makes the reconciler obey ClusterRolloutGates, and count approvals. The API
// server must serve both kinds, and their index must exist (gather.IndexApprovals). It may be
// called once, after SetupWithManager and before the manager starts.
func (r *Reconciler) WatchApprovals() error {
	if err := r.late.watch(&v1alpha1.RolloutApproval{}, rolloutOfApproval); err != nil {
		return fmt.Errorf("watch RolloutApprovals: %w", err)
	}
	if err := r.late.watch(&v1alpha1.ClusterRolloutGate{}, r.concerned().rolloutsOfClusterGate, predicate.GenerationChangedPredicate{}); err != nil {
		return fmt.Errorf("watch ClusterRolloutGates: %w", err)
	}
	r.late.approvals.Store(true)
	return nil
}

func rolloutOfApproval(_ context.Context, a client.Object) []reconcile.Request {
	return named(a, a.(*v1alpha1.RolloutApproval).Spec.RolloutRef.Name)
}

// rolloutsOfClusterGate maps a gate to the Rollouts that it may select.
func (c concerned) rolloutsOfClusterGate(ctx context.Context, gate client.Object) []reconcile.Request {
	rollouts, err := gather.RolloutsOfGate(ctx, c.reader, gate.(*v1alpha1.ClusterRolloutGate))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find the Rollouts of a ClusterRolloutGate")
	}
	return requestsFor(rollouts)
}

// confirmApprovals lists what people have said of the release past the cache, before it is
// promoted. If that holds it, the decision may be about another release, whose decisions are
// then listed too.
func (r *Reconciler) confirmApprovals(ctx context.Context, s *gather.Snapshot, d promotion.Decision) (promotion.Decision, error) {
	listed := map[string]bool{}
	for gather.AsksForApprovals(s.Gates) && d.Action.Promotes() && !listed[d.Release.Tag] {
		if err := r.gatherer().ConfirmApprovals(ctx, s, d.Release.Tag); err != nil {
			return d, err
		}
		listed[d.Release.Tag] = true
		d = promotion.Decide(s.Input)
	}
	return d, nil
}

// expendApprovals deletes decisions that ended long ago, after a promotion: otherwise they would
// only grow in number. What cannot be deleted now is deleted after a later one.
func (r *Reconciler) expendApprovals(ctx context.Context, recorded *v1alpha1.Rollout, s gather.Snapshot) {
	kept := cmp.Or(r.ApprovalRetention, approvals.KeptFor)
	for _, a := range approvals.Expendable(s.Approvals.Given, recorded.Status.History, kept, s.Now) {
		gone := &v1alpha1.RolloutApproval{ObjectMeta: a.ObjectMeta}
		if err := r.Client.Delete(ctx, gone, client.Preconditions{UID: &a.UID}); client.IgnoreNotFound(err) != nil {
			ctrl.LoggerFrom(ctx).Error(err, "delete a RolloutApproval that ended long ago", "name", a.Name)
			return
		}
	}
}

// approvedBy reports who has let the newest promotion go.
func approvedBy(rollout *v1alpha1.Rollout) []transition {
	current := rollout.Current()
	record := current.Approval
	if record == nil {
		return nil
	}
	var t transition
	switch record.Outcome {
	case v1alpha1.OutcomeApproved:
		t = ofEntry(rollout, v1alpha1.ApprovedReason, fmt.Sprintf("%s was approved by %s", current.Version.Tag, people(record.By)))
	case v1alpha1.OutcomeOverridden:
		t = ofEntry(rollout, v1alpha1.OverriddenReason,
			fmt.Sprintf("%s is promoted without the approvals that are missing, by %s", current.Version.Tag, people(record.By)))
		t.eventType = corev1.EventTypeWarning
	case v1alpha1.OutcomeNotNeeded, v1alpha1.OutcomeMissing:
		return nil
	}
	t.metadata[metaActor], t.metadata[metaGate] = usernames(record.By), strings.Join(record.Gates, ", ")
	return []transition{t}
}

// people returns who decided, in which role, and why.
func people(by []v1alpha1.RecordedApproval) string {
	var all []string
	for _, a := range by {
		text := truncate.Line(a.Username, verdict.LongestName)
		if a.Role != "" {
			text += " as " + a.Role
		}
		if a.Reason != "" {
			text += fmt.Sprintf(" (%s)", truncate.Line(a.Reason, verdict.LongestComplaint))
		}
		all = append(all, text)
	}
	return truncate.List(all)
}

func usernames(by []v1alpha1.RecordedApproval) string {
	var all []string
	for _, a := range by {
		all = append(all, truncate.Line(a.Username, verdict.LongestName))
	}
	return truncate.List(all)
}

// approveCommand returns the command by which a user approves a release.
func approveCommand(rollout *v1alpha1.Rollout, tag string) string {
	return fmt.Sprintf("kubectl rollouts approve %s -n %s --version %s", rollout.Name, rollout.Namespace, tag)
}
