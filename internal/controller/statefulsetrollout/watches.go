// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"context"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

// controllerUID is the index of pods by the UID of their controller.
const controllerUID = "metadata.controllerUID"

// SetupWithManager registers the watch on StatefulSets, and prepares the watch on pods,
// which begins with the first group. A set that changes its group triggers both groups.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, options controller.Options) error {
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named("statefulsetrollout").
		Watches(&appsv1.StatefulSet{}, handler.EnqueueRequestsFromMapFunc(groupOf), builder.WithPredicates(changed(setTransition))).
		WithEventFilter(r.writes.ForgetGone()).
		WithOptions(options).
		Build(r)
	if err != nil {
		return fmt.Errorf("set up the watch on StatefulSets: %w", err)
	}
	r.pods.cache, r.pods.controller = mgr.GetCache(), c
	r.pods.source = func() source.SyncingSource {
		return source.Kind[client.Object](mgr.GetCache(), &corev1.Pod{},
			handler.EnqueueRequestsFromMapFunc(r.groupOfPod), changed(podTransition))
	}
	return nil
}

// groupOf returns the group of a set.
func groupOf(_ context.Context, set client.Object) []reconcile.Request {
	group, ok := set.GetLabels()[rolloutgroup.Label]
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: set.GetNamespace(), Name: group}}}
}

// groupOfPod returns the group of the set that controls a pod.
func (r *Reconciler) groupOfPod(ctx context.Context, pod client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "StatefulSet" {
		return nil
	}
	set := &appsv1.StatefulSet{}
	key := types.NamespacedName{Namespace: pod.GetNamespace(), Name: owner.Name}
	if err := r.Client.Get(ctx, key, set); err != nil || set.UID != owner.UID {
		return nil // not in a group, or of an earlier set with the same name
	}
	return groupOf(ctx, set)
}

// changed admits updates that change something that a plan depends on.
func changed(part func(client.Object) any) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !reflect.DeepEqual(part(e.ObjectOld), part(e.ObjectNew))
	}}
}

func podTransition(o client.Object) any {
	pod := o.(*corev1.Pod)
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return workload.PodFacts(pod)
	}
	return []any{workload.PodFacts(pod), owner.UID}
}

func setTransition(o client.Object) any {
	set := o.(*appsv1.StatefulSet)
	return []any{workload.SetFacts(set), set.Labels[rolloutgroup.Label], unsupported(set)}
}
