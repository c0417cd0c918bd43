// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
)

// informer returns an informer for part of a kind, in all namespaces.
func (w *kindWatches) informer(ctx context.Context, of part, k *kind) cache.SharedIndexInformer {
	informer := cache.NewSharedIndexInformer(w.listWatch(of), &metav1.PartialObjectMetadata{}, 0, nil)
	// The setters fail only for an informer that has been started.
	_ = informer.SetTransform(of.trimmed)
	_ = informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		if !isRefusal(err) {
			cache.DefaultWatchErrorHandler(ctx, r, err)
			return
		}
		ctrl.Log.WithName("changes").Info("a kind cannot be watched; its objects are looked at in intervals",
			"resource", of.String(), "reason", err.Error())
		w.refused(of, k)
	})
	_, _ = informer.AddEventHandler(w.handler(ctx, of.by))
	return informer
}

// listWatch requests only objects that have Flux's label: the Pods of a Deployment do not
// have it, and would be the largest part.
func (w *kindWatches) listWatch(of part) cache.ListerWatcher {
	objects := w.client.Resource(of.GroupVersionResource)
	name, _ := kustomization.OwnerLabels(of.by)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = name
			return objects.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = name
			return objects.Watch(ctx, o)
		},
	}, w.client)
}

// isRefusal reports whether it is of no use to ask again now: the kind may not be listed
// or watched, does not support it, or is no longer served.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// trimmed keeps only the fields that show that an object changed, and who applied it.
func (of part) trimmed(object any) (any, error) {
	o, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		return object, nil
	}
	name, namespace := kustomization.OwnerLabels(of.by)
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion,
		Labels: map[string]string{name: o.Labels[name], namespace: o.Labels[namespace]},
	}}, nil
}

func (w *kindWatches) handler(ctx context.Context, by string) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { w.report(ctx, by, object) },
		UpdateFunc: func(before, after any) {
			if isChange(before, after) {
				w.report(ctx, by, after)
			}
		},
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			w.report(ctx, by, object)
		},
	}
}

// isChange reports whether an update is a change. A watch repeats objects after an
// interruption.
func isChange(before, after any) bool {
	b, ok := before.(*metav1.PartialObjectMetadata)
	a, okAfter := after.(*metav1.PartialObjectMetadata)
	return !ok || !okAfter || a.ResourceVersion != b.ResourceVersion
}

func (w *kindWatches) report(ctx context.Context, by string, object any) {
	if o, ok := object.(*metav1.PartialObjectMetadata); ok {
		name, namespace := kustomization.OwnerLabels(by)
		w.changed(ctx, kustomization.Subject{
			Kind: by, NamespacedName: types.NamespacedName{Namespace: o.Labels[namespace], Name: o.Labels[name]},
		})
	}
}
