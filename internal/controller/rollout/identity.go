// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,resourceNames=rollout-controller-approvals;rollout-controller-withdrawals;rollout-controller-deploy-user,verbs=list;watch

// WatchPolicies wakes all Rollouts when a policy in a cache changes, or its binding. It may be
// called after SetupWithManager and before the manager starts.
func (r *Reconciler) WatchPolicies(policies cache.Cache) error {
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return r.concerned().listRollouts(ctx)
	})
	for _, kind := range []client.Object{&admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}} {
		if err := r.late.add(source.Kind(policies, kind, all, policyChanged())); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	return nil
}

// policyChanged leaves out those that exist when the controller starts: all Rollouts are
// looked at then.
func policyChanged() predicate.Predicate {
	changed := predicate.GenerationChangedPredicate{}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
		UpdateFunc: changed.Update,
	}
}
