// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/identity"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/approvals"
)

func isPolicy(object any) bool {
	switch object.(type) {
	case *admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding:
		return true
	}
	return false
}

// identity returns whether names in approvals count: as the policies say, except where the user
// may not read them, where the controller counts approvals without them, and in files.
func (p *Program) identity(from witness, rollout *v1alpha1.Rollout) func(context.Context) approvals.Identity {
	if p.offline {
		return identity.Trusted
	}
	return func(ctx context.Context) approvals.Identity {
		found := (&identity.Policies{Reader: from, Now: p.Now}).Identity(ctx)
		_, unread := from.unread["ValidatingAdmissionPolicies"]
		if unread || found.Problem != nil && countsApprovals(rollout) {
			return identity.Trusted(ctx)
		}
		return found
	}
}

// countsApprovals reports whether the controller has counted approvals of the release that
// waits. It says so only if it trusts names.
func countsApprovals(rollout *v1alpha1.Rollout) bool {
	shown := meta.FindStatusCondition(rollout.Status.Conditions, v1alpha1.GatesPassingCondition)
	return shown != nil && (shown.Reason == v1alpha1.ApprovalRequiredReason || shown.Reason == v1alpha1.ApprovalRejectedReason)
}
