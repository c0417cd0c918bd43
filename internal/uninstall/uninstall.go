// SPDX-License-Identifier: Apache-2.0

// Package uninstall unpauses the Deployments that the controller has paused, before the
// controller is permanently removed or after the coordinator was removed from it: a
// removed controller cannot unpause anything.
package uninstall

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// page is how many Deployments are read at a time.
const page = 500

// Stop scales the controller's own Deployment to zero and waits until it has no replica
// left. A Deployment that does not exist counts as stopped.
func Stop(ctx context.Context, c client.WithWatch, self types.NamespacedName) error {
	own := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: self.Namespace, Name: self.Name}}
	nobody := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`))
	if _, err := write.Patch(ctx, c, own, nobody); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("scale Deployment %s to zero: %w", self, err)
	} else if err != nil {
		return nil
	}
	for {
		stopped, err := untilStopped(ctx, c, self)
		if stopped || err != nil {
			return err
		}
	}
}

// untilStopped watches the Deployment until it has stopped, or the watch has ended.
func untilStopped(ctx context.Context, c client.WithWatch, self types.NamespacedName) (bool, error) {
	seen, err := c.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(self.Namespace), client.MatchingFields{"metadata.name": self.Name})
	if err != nil {
		return false, fmt.Errorf("watch Deployment %s: %w", self, err)
	}
	defer seen.Stop()
	for event := range seen.ResultChan() {
		d, ok := event.Object.(*appsv1.Deployment)
		if ok && (event.Type == watch.Deleted || d.Status.ObservedGeneration >= d.Generation && d.Status.Replicas == 0) {
			return true, nil
		}
	}
	return false, ctx.Err()
}

// StopAdmission deletes the objects that make the API server pause Deployments: the binding
// of the policy with that name, and the configuration of the webhook with that name.
func StopAdmission(ctx context.Context, c client.Client, policy, webhook string) error {
	var errs []error
	for _, object := range []client.Object{
		&admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: policy}},
		&admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: webhook}},
	} {
		// Without policies, there are no bindings either.
		if err := c.Delete(ctx, object); err != nil && !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
			errs = append(errs, fmt.Errorf("delete %T %s: %w", object, object.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

// UnpauseAll unpauses every Deployment that waits for a coordination, in a namespace, or in
// all if it is empty. Deployments that a user has paused by annotation stay paused. If
// one cannot be unpaused, the others still are. The reader reads past the caches.
func UnpauseAll(ctx context.Context, from client.Reader, to client.Writer, namespace string) error {
	_, err := unpauseAll(ctx, from, to, namespace)
	return err
}

// unpauseAll is like UnpauseAll, and counts the Deployments.
func unpauseAll(ctx context.Context, from client.Reader, to client.Writer, namespace string) (unpaused int, err error) {
	var errs []error
	list := &appsv1.DeploymentList{}
	for begun := false; !begun || list.Continue != ""; begun = true {
		if err := from.List(ctx, list, client.InNamespace(namespace), client.Limit(page), client.Continue(list.Continue)); err != nil {
			return unpaused, errors.Join(append(errs, fmt.Errorf("list Deployments: %w", err))...)
		}
		for i := range list.Items {
			if _, held := list.Items[i].Annotations[v1.HeldByAnnotation]; held {
				errs = append(errs, unpause(ctx, from, to, client.ObjectKeyFromObject(&list.Items[i])))
				unpaused++
			}
		}
	}
	return unpaused, errors.Join(errs...)
}

// unpause unpauses one Deployment, on condition that nobody writes it meanwhile.
func unpause(ctx context.Context, from client.Reader, to client.Writer, key types.NamespacedName) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		d := &appsv1.Deployment{}
		if err := from.Get(ctx, key, d); err != nil {
			return err
		}
		before := d.DeepCopy()
		delete(d.Annotations, v1.HeldByAnnotation)
		d.Spec.Paused = d.Spec.Paused && d.Annotations[v1.RolloutPausedAnnotation] == v1.RolloutPausedValue
		_, err := write.Patch(ctx, to, d, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
		return err
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("unpause Deployment %s: %w", key, err)
	}
	ctrl.LoggerFrom(ctx).Info("a Deployment was unpaused", "deployment", key)
	return nil
}
