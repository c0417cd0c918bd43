// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/identity"
	"github.com/fluxrollouts/rollout-controller/internal/installation"
)

// approvals finds that gates ask for approvals of which none counts, because nobody vouches for
// the names in them.
func (h installationHealth) approvals(ctx context.Context, open program.Cluster, objects []map[string]any) ([]lint.Finding, []lint.NotChecked) {
	gate := asking(objects)
	if gate == "" || slices.ContainsFunc(h.instances, func(i installation.Instance) bool { return i.TrustsNames }) {
		return nil, nil
	}
	read := &forbidden{Reader: open.Client}
	problem := (&identity.Policies{Reader: read, Now: h.Now}).Identity(ctx).Problem
	switch {
	case read.is:
		return nil, []lint.NotChecked{{Rule: voidApprovals, Object: gate, Reason: "you may not read the ValidatingAdmissionPolicies"}}
	case problem == nil:
		return nil, nil
	}
	return []lint.Finding{{
		Rule: voidApprovals, Severity: lint.SeverityError, Object: gate, Message: "it asks for approvals, and " + problem.Message,
	}}, nil
}

// asking returns the first gate that asks for approvals; empty if none does.
func asking(objects []map[string]any) string {
	for _, g := range decoded[v1alpha1.ClusterRolloutGate](objects, v1alpha1.GroupVersion.WithKind(v1alpha1.ClusterRolloutGateKind)) {
		if g.Spec.Approvals != nil {
			return "ClusterRolloutGate " + g.Name
		}
	}
	for _, g := range decoded[v1alpha1.RolloutGate](objects, v1alpha1.GroupVersion.WithKind("RolloutGate")) {
		if g.Spec.Approvals != nil {
			return "RolloutGate " + g.Namespace + "/" + g.Name
		}
	}
	return ""
}

// forbidden is a reader that remembers whether something was forbidden.
type forbidden struct {
	client.Reader
	is bool
}

// Get implements client.Reader.
func (f *forbidden) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	err := f.Reader.Get(ctx, key, o, options...)
	f.is = f.is || apierrors.IsForbidden(err)
	return err
}
