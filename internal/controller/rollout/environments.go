// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
)

// +kubebuilder:rbac:groups=environments.kuberik.com,resources=environments,verbs=get;list;watch

// WatchEnvironments makes the reconciler ask Environments. The API server must serve them,
// and their indexes must exist (gather.IndexEnvironments). It may be called once, after
// SetupWithManager and before the manager starts.
func (r *Reconciler) WatchEnvironments() error {
	if err := r.late.watch(&environmentsv1.Environment{}, rolloutOfEnvironment, upstreamsChanged()); err != nil {
		return fmt.Errorf("watch Environments: %w", err)
	}
	r.late.environments.Store(true)
	return nil
}

func rolloutOfEnvironment(_ context.Context, e client.Object) []reconcile.Request {
	return named(e, e.(*environmentsv1.Environment).Spec.RolloutRef.Name)
}

// upstreamsChanged passes an Environment if something else was recorded of its upstreams.
// Its own record is only for the environments after it.
func upstreamsChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*environmentsv1.Environment), e.ObjectNew.(*environmentsv1.Environment)
		return before.Generation != after.Generation || environment.ReadyReason(before) != environment.ReadyReason(after) ||
			!equality.Semantic.DeepEqual(before.Status.Upstreams, after.Status.Upstreams) ||
			!equality.Semantic.DeepEqual(before.Status.RolloutGateRef, after.Status.RolloutGateRef)
	}}
}
