// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/approvals"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

const (
	// approvalRolloutIndex finds RolloutApprovals by the name of their Rollout, in the caches
	// and on the API server.
	approvalRolloutIndex = ".spec.rolloutRef.name"
	selectableRollout    = "spec.rolloutRef.name"
	selectableVersion    = "spec.version"

	// mostDecisions is how many decisions on one version are evaluated.
	mostDecisions = 256
	// decisionsPerPage is how many the API server is asked for at once.
	decisionsPerPage = 500
)

// AsksForApprovals reports whether a gate asks for approvals.
func AsksForApprovals(gates promotion.Gates) bool {
	return slices.ContainsFunc(gates.Gates, func(g v1alpha1.RolloutGate) bool { return g.Spec.Approvals != nil }) ||
		slices.ContainsFunc(gates.Cluster, func(g v1alpha1.ClusterRolloutGate) bool { return g.Spec.Approvals != nil })
}

// gatherApprovals reads the decisions on releases of the Rollout, if a gate asks for any.
func (g Gatherer) gatherApprovals(ctx context.Context, s *Snapshot) error {
	if !AsksForApprovals(s.Gates) {
		return nil
	}
	if !g.Approvals {
		s.Approvals.Problem = approvalsUnread("RolloutApprovals are not read: install the CRDs and the roles of this version, and start again")
		return nil
	}
	s.Approvals.Identity = g.WhoIs(ctx)
	list := &v1alpha1.RolloutApprovalList{}
	if err := g.Client.List(ctx, list, client.InNamespace(s.Rollout.Namespace),
		client.MatchingFields{approvalRolloutIndex: s.Rollout.Name}, client.UnsafeDisableDeepCopy); err != nil {
		s.Approvals.Problem = approvalsUnread("the RolloutApprovals could not be read" + unreadable.Why(err))
		return err
	}
	s.give(list.Items)
	return nil
}

// WhoIs says whether the names of people can be trusted. It fails closed.
func (g Gatherer) WhoIs(ctx context.Context) approvals.Identity {
	if g.Identity == nil {
		return approvals.Identity{Problem: &verdict.Problem{
			Reason: v1alpha1.IdentityNotVerifiedReason, Message: "no approval counts: nobody has looked whether names can be trusted",
		}}
	}
	return g.Identity(ctx)
}

// ConfirmApprovals replaces the decisions on a version with those that the API server has now:
// a rejection counts before a cache shows it.
func (g Gatherer) ConfirmApprovals(ctx context.Context, s *Snapshot, version string) error {
	live, err := g.liveApprovals(ctx, s.Rollout, version)
	if err != nil {
		return fmt.Errorf("confirm the approvals of %s: %w", version, err)
	}
	others := slices.DeleteFunc(slices.Clone(s.Approvals.Given), func(a v1alpha1.RolloutApproval) bool { return a.Spec.Version == version })
	s.give(append(others, live...))
	return nil
}

// give makes decisions count, unless there are too many on one version: a rejection may be
// among those that are left out.
func (s *Snapshot) give(all []v1alpha1.RolloutApproval) {
	on := map[string]int{}
	for i := range all {
		version := all[i].Spec.Version
		if on[version]++; on[version] > mostDecisions {
			s.Approvals.Given, s.Approvals.Problem = nil, approvalsUnread(fmt.Sprintf(
				"there are more than %d RolloutApprovals of %s: delete those that are not needed", mostDecisions, version))
			return
		}
	}
	s.Approvals.Given = all
}

func approvalsUnread(message string) *verdict.Problem {
	return &verdict.Problem{Reason: v1alpha1.ApprovalListFailedReason, Message: message}
}

// liveApprovals lists the decisions on a version past the caches, up to one more than
// count. API servers before 1.31 cannot select them, and list those of the whole namespace.
func (g Gatherer) liveApprovals(ctx context.Context, rollout *v1alpha1.Rollout, version string) ([]v1alpha1.RolloutApproval, error) {
	found, err := g.listApprovals(ctx, rollout, version, client.MatchingFields{selectableRollout: rollout.Name, selectableVersion: version})
	if apierrors.IsBadRequest(err) {
		return g.listApprovals(ctx, rollout, version)
	}
	return found, err
}

func (g Gatherer) listApprovals(ctx context.Context, rollout *v1alpha1.Rollout, version string, selection ...client.ListOption) ([]v1alpha1.RolloutApproval, error) {
	var found []v1alpha1.RolloutApproval
	for next := ""; ; {
		page := &v1alpha1.RolloutApprovalList{}
		if err := g.Live.List(ctx, page, append(selection, client.InNamespace(rollout.Namespace), client.Limit(decisionsPerPage), client.Continue(next))...); err != nil {
			return nil, err
		}
		for _, a := range page.Items {
			if a.Spec.RolloutRef.Name == rollout.Name && a.Spec.Version == version {
				found = append(found, a)
			}
		}
		if next = page.Continue; next == "" || len(found) > mostDecisions {
			return found, nil
		}
	}
}
