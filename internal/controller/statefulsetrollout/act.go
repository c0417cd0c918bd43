// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/statefulsets"
)

// conflictDelay is how soon a group is reconciled again if a set has changed during the
// pass.
const conflictDelay = 100 * time.Millisecond

// act carries out the plan. It finishes sets before it replaces pods of others. A set
// that cannot be finished does not block the others: its status is for alerts, and its
// pods are in the wanted state.
func (r *Reconciler) act(ctx context.Context, g gathered, m *memory, plan statefulsets.Plan) (outcome, error) {
	o := outcome{plan: plan}
	unpromoted := r.promote(ctx, g, plan.Promote)
	if apierrors.IsConflict(unpromoted) {
		o.again = conflictDelay
		return o, nil
	}
	err := r.replace(ctx, g, m, plan)
	if isRefusal(err) {
		if r.refusals.first(g.key) {
			r.emitRejection(ctx, g, plan.Delete[0].Set, err)
		}
		o.refused, o.again = true, r.refusals.wait(g.key)
		return o, unpromoted
	}
	if err == nil && len(plan.Delete) > 0 {
		r.refusals.over(g.key)
	}
	return o, errors.Join(unpromoted, err)
}

// replace deletes pods until a deletion fails. It records the turn before that, because a
// deletion may succeed although its response is lost.
func (r *Reconciler) replace(ctx context.Context, g gathered, m *memory, plan statefulsets.Plan) error {
	m.last = plan.Last
	if plan.Starts {
		r.emitStart(ctx, g, plan.Delete[0])
	}
	for _, d := range plan.Delete {
		switch err := r.remove(ctx, g.key.Namespace, d); {
		case apierrors.IsNotFound(err), apierrors.IsConflict(err):
			continue // it was replaced in the meantime
		case err != nil:
			return fmt.Errorf("delete pod %s: %w", d.Pod, err)
		}
		m.deleted[d.UID] = true
		r.emitReplaced(ctx, g, d)
	}
	return nil
}

// remove deletes or evicts exactly this pod, and no other pod of the same name.
func (r *Reconciler) remove(ctx context.Context, namespace string, d statefulsets.Deletion) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: d.Pod}}
	if !r.UseEviction {
		return r.Client.Delete(ctx, pod, client.Preconditions{UID: &d.UID})
	}
	return r.Client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: namespace, Name: d.Pod},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(d.UID))},
	})
}

// isRefusal reports whether a disruption budget refuses an eviction.
func isRefusal(err error) bool {
	return apierrors.IsTooManyRequests(err) && apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause)
}

// promote finishes sets.
func (r *Reconciler) promote(ctx context.Context, g gathered, names []string) error {
	var errs []error
	for _, name := range names {
		if err := r.writeRevision(ctx, g.sets[name]); err != nil {
			errs = append(errs, fmt.Errorf("write the revision of StatefulSet %s: %w", name, err))
			continue
		}
		r.emitFinished(ctx, g, name)
	}
	return errors.Join(errs...)
}

// blocked returns the reason why pods are not replaced; empty if there is none.
func (o outcome) blocked() string {
	if o.refused {
		return rolloutgroup.EvictionRefusedReason
	}
	return o.plan.Reason
}
