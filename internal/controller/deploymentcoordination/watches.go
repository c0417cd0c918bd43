// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
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

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// SetupWithManager registers the watches. Each enqueues the namespace of the object if it
// has a coordination, or if the Deployment still has the annotation of a former one.
func (r *Reconciler) SetupWithManager(_ context.Context, mgr ctrl.Manager, options controller.Options) error {
	on := handler.EnqueueRequestsFromMapFunc
	build := ctrl.NewControllerManagedBy(mgr).
		Named("deploymentcoordination").
		Watches(&coordinationv1.DeploymentCoordination{}, on(namespaceOf)).
		Watches(&appsv1.Deployment{}, on(r.namespaceOfDeployment)).
		Watches(&appsv1.ReplicaSet{}, on(r.namespaceIfCoordinated), builder.WithPredicates(setChanged())).
		WithEventFilter(r.writes.ForgetGone()).
		WithOptions(options)
	if r.Admission != nil {
		build = build.WatchesRawSource(r.Admission.Changes())
	}
	return build.Complete(r)
}

func namespaceOf(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: o.GetNamespace()}}}
}

// namespaceOfDeployment enqueues namespaces that have a coordination. For a Deployment
// with the annotation held-by it enqueues the namespace even if there is no coordination
// any more.
func (r *Reconciler) namespaceOfDeployment(ctx context.Context, d client.Object) []reconcile.Request {
	if d.GetAnnotations()[coordinationv1.HeldByAnnotation] != "" {
		return namespaceOf(ctx, d)
	}
	return r.namespaceIfCoordinated(ctx, d)
}

func (r *Reconciler) namespaceIfCoordinated(ctx context.Context, o client.Object) []reconcile.Request {
	list := &coordinationv1.DeploymentCoordinationList{}
	err := r.Client.List(ctx, list, client.InNamespace(o.GetNamespace()), client.Limit(1), client.UnsafeDisableDeepCopy, unreadable.Left{})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list DeploymentCoordinations of a namespace")
	}
	if err == nil && len(list.Items) == 0 {
		return nil
	}
	return namespaceOf(ctx, o)
}

// setChanged admits the update of a ReplicaSet when its wanted number of replicas or its
// owner changes, and not when only its Pods change.
func setChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || ownerOf(e.ObjectOld) != ownerOf(e.ObjectNew)
	}}
}

func ownerOf(o client.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return owner.UID
	}
	return ""
}
