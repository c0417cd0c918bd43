// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// collect deletes the gates that a schedule left behind which was deleted with
// --cascade=orphan. Of gates with an owner the garbage collector takes care: their schedule may
// be one that the cache does not show yet.
func (r *Reconciler) collect(ctx context.Context, schedule types.NamespacedName, pass *announce.Pass) (ctrl.Result, error) {
	pass.Ends("the schedule does not exist, and its gates are deleted")
	o := r.kind()
	o.SetNamespace(schedule.Namespace)
	o.SetName(schedule.Name)
	gates, err := r.gatesNamed(ctx, gather.ScheduleOf(o))
	writes, failures := r.allowed(), []error{err}
	for _, gate := range gates {
		if metav1.GetControllerOfNoCopy(gate) == nil {
			failures = append(failures, r.drop(ctx, gate, writes))
		}
	}
	if err := errors.Join(failures...); err != nil || !writes.more {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: recheck.AtOnce}, nil
}

// leftBehind returns the gates of an earlier schedule of the same name: they have its UID in
// their name and, after a restore, as their owner.
func (r *Reconciler) leftBehind(ctx context.Context, s gather.Schedule, rollouts []*v1alpha1.Rollout) ([]*v1alpha1.RolloutGate, error) {
	named, err := r.gatesNamed(ctx, s)
	if err != nil || len(named) == 0 {
		return nil, err
	}
	own := map[types.NamespacedName]bool{}
	for _, rollout := range rollouts {
		own[types.NamespacedName{Namespace: rollout.Namespace, Name: gateName(s, rollout.Name)}] = true
	}
	return slices.DeleteFunc(named, func(gate *v1alpha1.RolloutGate) bool {
		owner := metav1.GetControllerOfNoCopy(gate)
		foreign := owner != nil && (owner.UID == s.GetUID() || owner.Kind != s.Kind || owner.Name != s.GetName())
		return foreign || own[client.ObjectKeyFromObject(gate)]
	}), nil
}

// gatesNamed returns the gates whose labels name a schedule, whoever owns them.
func (r *Reconciler) gatesNamed(ctx context.Context, s gather.Schedule) ([]*v1alpha1.RolloutGate, error) {
	list := &v1alpha1.RolloutGateList{}
	key := nameKey(s.Kind, s.GetNamespace(), truncate.Name(s.GetName(), validation.LabelValueMaxLength))
	if err := r.Client.List(ctx, list, client.MatchingFields{gateNameIndex: key}, client.UnsafeDisableDeepCopy, unreadable.Left{}); err != nil {
		return nil, fmt.Errorf("list the gates of a schedule: %w", err)
	}
	var gates []*v1alpha1.RolloutGate
	for i := range list.Items {
		gates = append(gates, &list.Items[i])
	}
	return gates, nil
}

// namesOfGate returns by which schedule a gate is found.
func namesOfGate(gate client.Object) []string {
	if !gather.IsOfSchedule(gate) {
		return nil
	}
	labels := gate.GetLabels()
	return []string{nameKey(labels[v1alpha1.ScheduleKindLabel], labels[v1alpha1.ScheduleNamespaceLabel], labels[v1alpha1.ScheduleNameLabel])}
}

func nameKey(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

// scheduleNamedBy maps a gate that nobody owns to the schedule of its labels, which may not
// exist. The label of a long name shows a part of it: one that exists is found by its name.
func (r *Reconciler) scheduleNamedBy(ctx context.Context, gate client.Object) []reconcile.Request {
	labels, kind := gate.GetLabels(), gather.ScheduleOf(r.kind()).Kind
	if !gather.IsOfSchedule(gate) || labels[v1alpha1.ScheduleKindLabel] != kind {
		return nil
	}
	key := types.NamespacedName{Name: labels[v1alpha1.ScheduleNameLabel]}
	if !r.Cluster {
		key.Namespace = gate.GetNamespace()
	}
	named := r.requests(ctx, key.Namespace, func(s gather.Schedule) bool {
		return truncate.Name(s.GetName(), validation.LabelValueMaxLength) == key.Name
	})
	if len(named) > 0 || !r.Shard.TakesUnlabelled() {
		return named
	}
	return []reconcile.Request{{NamespacedName: key}}
}
