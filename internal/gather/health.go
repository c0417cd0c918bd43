// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// gatherHealth reads the HealthChecks that the Rollout selects, and those that it owns. A
// selection that only a user can correct is not an error.
func (g Gatherer) gatherHealth(ctx context.Context, s *Snapshot) error {
	return g.health(ctx, s, s.Targets.Problem == nil)
}

// health does so for a Rollout whose targets are known, or not.
func (g Gatherer) health(ctx context.Context, s *Snapshot, targetsKnown bool) error {
	selection, err := selectionOf(s.Rollout)
	if err != nil {
		s.Health.Problem = &verdict.Problem{
			Reason:  v1alpha1.InvalidSelectorReason,
			Message: fmt.Sprintf("spec.healthCheckSelector cannot be used: %v", err),
		}
		return nil
	}
	if g.NoCrossNamespaceRefs && selection.namespaces != nil {
		s.Health.Problem = &verdict.Problem{
			Reason: v1alpha1.AccessDeniedReason,
			Message: "spec.healthCheckSelector.namespaceSelector selects HealthChecks of other namespaces, " +
				"but references across namespaces are not allowed: remove it, and select HealthChecks of this namespace",
		}
		return nil
	}
	checks, err := g.selectedChecks(ctx, selection)
	if err == nil {
		s.Health.Problem, err = g.denied(ctx, s.Rollout.Namespace, checks)
	}
	if err == nil {
		checks, err = g.withTargets(ctx, s, checks, targetsKnown)
	}
	if err != nil {
		s.Health.Problem = &verdict.Problem{
			Reason: v1alpha1.HealthCheckListFailedReason, Message: "the HealthChecks could not be read" + unreadable.Why(err),
		}
		return err
	}
	if s.Health.Problem == nil {
		s.Health.Checks, s.Health.Shared = checks, shared(s.Found, checks)
		if g.Memory != nil {
			s.Health.Checks, s.Health.Rejected = g.Memory.Checks(s.Rollout, checks)
		}
	}
	return nil
}

// shared returns the checks of Kustomizations and HelmReleases by which several Rollouts deploy.
func shared(found []targets.Target, checks []v1alpha1.HealthCheck) map[string]bool {
	var all map[string]bool
	for i := range checks {
		if !checks[i].IsClass(v1alpha1.HealthCheckClassKustomization) {
			continue
		}
		about, err := kustomization.Reference(&checks[i])
		if err == nil && slices.ContainsFunc(found, func(t targets.Target) bool {
			return subjectOf(t) == about && t.IsShared()
		}) {
			if all == nil {
				all = map[string]bool{}
			}
			all[client.ObjectKeyFromObject(&checks[i]).String()] = true
		}
	}
	return all
}

// denied returns a problem if a check in another namespace does not admit this one. A
// Rollout also resets the checks that it selects, and then nobody can see what their
// writers reported. The problem reveals only the namespace of such a check.
func (g Gatherer) denied(ctx context.Context, namespace string, checks []v1alpha1.HealthCheck) (*verdict.Problem, error) {
	foreign := func(check v1alpha1.HealthCheck) bool { return check.Namespace != namespace }
	if !slices.ContainsFunc(checks, foreign) {
		return nil, nil
	}
	own, err := namespaceLabels(ctx, g.Client, namespace)
	if err != nil {
		return nil, err
	}
	for i := range checks {
		if foreign(checks[i]) && !checks[i].Spec.AccessFrom.Admits(own) {
			return &verdict.Problem{Reason: v1alpha1.AccessDeniedReason, Message: fmt.Sprintf(
				"spec.healthCheckSelector selects a HealthCheck of namespace %s whose spec.accessFrom does not let in namespace %s: "+
					"have the namespace added there, or select fewer HealthChecks", checks[i].Namespace, namespace)}, nil
		}
	}
	return nil, nil
}
