// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/cache"
	"github.com/fluxrollouts/rollout-controller/internal/installation"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// againAfter is the pause before the next look for Deployments that wait, while the API
// server pauses new ones.
const againAfter = 10 * time.Minute

// coordinates replaces the template of a Deployment that may run the coordinator.
const coordinates = "coordinates"

// KeptOfAll keeps of each Deployment whether it waits, and whether it may run the
// coordinator.
func KeptOfAll() map[client.Object]ctrlcache.ByObject {
	return map[client.Object]ctrlcache.ByObject{&appsv1.Deployment{}: {Transform: cache.Bounded(func(o any) (any, error) {
		if d, ok := o.(*appsv1.Deployment); ok {
			reduce(d)
		}
		return o, nil
	})}}
}

func reduce(d *appsv1.Deployment) {
	may, account := installation.Coordinates(d), d.Spec.Template.Spec.ServiceAccountName
	d.Labels, d.ManagedFields, d.OwnerReferences, d.Finalizers = nil, nil, nil, nil
	maps.DeleteFunc(d.Annotations, func(key, _ string) bool {
		return key != v1.HeldByAnnotation && key != v1.RolloutPausedAnnotation && key != unreadable.Annotation
	})
	d.Spec = appsv1.DeploymentSpec{Paused: d.Spec.Paused}
	d.Status = appsv1.DeploymentStatus{}
	if may {
		d.Spec.Template.Name, d.Spec.Template.Spec.ServiceAccountName = coordinates, account
	}
}

// Abandoned unpauses the Deployments that wait for a coordination although nobody
// coordinates them: they would wait for ever. It is a runnable of a manager in which the
// coordinator does not run, and runs on the leader.
type Abandoned struct {
	// Client reads past the caches, and writes.
	Client client.Client
	// Deployments reads Deployments past the caches, and keeps of them what [KeptOfAll] does:
	// tenants create any number.
	Deployments client.Reader
	// Because is why the coordinator does not run.
	Because string
	// Gone means that the API server does not serve the kind of coordinations: then no
	// other process can coordinate either.
	Gone bool
	// Self is the Deployment of this process.
	Self types.NamespacedName
	// Policy is the name of the binding with which the API server pauses Deployments.
	Policy string
	// Namespace is the only namespace to look at. Empty means all.
	Namespace string
	// Clock is the clock.
	Clock clock.Clock
}

// Start unpauses them once, and again as long as the API server pauses new ones.
func (a *Abandoned) Start(ctx context.Context) error {
	for reported := false; ; {
		next, err := a.pass(ctx, &reported)
		if err != nil && ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "not every Deployment without a coordination is unpaused yet")
			next = retryAfter
		}
		if next == 0 || !sleep(ctx, a.Clock, next) {
			return nil
		}
	}
}

// pass unpauses those that wait now. It returns when to look again; zero means never.
func (a *Abandoned) pass(ctx context.Context, reported *bool) (time.Duration, error) {
	all, others, err := a.look(ctx)
	if err != nil {
		return 0, err
	}
	waiting, other, err := a.uncoordinated(ctx, all, others)
	if err != nil {
		return 0, err
	}
	log := ctrl.LoggerFrom(ctx).WithValues("because", a.Because)
	if other != "" {
		if len(waiting) > 0 {
			log.Info("Deployments wait for a coordinator that this process does not run, and another one seems to", "waiting", len(waiting), "other", other)
		}
		return 0, nil
	}
	if err := a.unpause(ctx, waiting); err != nil {
		return 0, err
	}
	if len(waiting) > 0 {
		log.Info("Deployments waited for a coordinator that does not run, and are unpaused now", "unpaused", len(waiting))
	}
	if a.Gone || !a.pauses(ctx) {
		return 0, nil
	}
	if !*reported {
		*reported = true
		log.Info("the API server still pauses new Deployments, which are unpaused some minutes later: delete the binding of the policy, "+
			"or let the coordinator run", "mutatingadmissionpolicybinding", a.Policy)
	}
	return againAfter, nil
}

// look returns the Deployments that wait, and those other ones that may run the coordinator,
// with their accounts.
func (a *Abandoned) look(ctx context.Context) (waiting []types.NamespacedName, others map[types.NamespacedName]string, err error) {
	others = map[types.NamespacedName]string{}
	list := &appsv1.DeploymentList{}
	for begun := false; !begun || list.Continue != ""; begun = true {
		if err := a.Deployments.List(ctx, list, client.InNamespace(a.Namespace), client.Limit(page), client.Continue(list.Continue)); err != nil {
			return nil, nil, fmt.Errorf("list Deployments: %w", err)
		}
		for i := range list.Items {
			d := &list.Items[i]
			key := client.ObjectKeyFromObject(d)
			if _, held := d.Annotations[v1.HeldByAnnotation]; held {
				waiting = append(waiting, key)
			}
			if !a.Gone && key != a.Self && d.Spec.Template.Name == coordinates {
				others[key] = cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default")
			}
		}
	}
	return waiting, others, nil
}

// pauses reports whether the API server pauses Deployments by the policy. A webhook has no
// effect without the coordinator, which serves it. What may not be read counts as absent.
func (a *Abandoned) pauses(ctx context.Context) bool {
	err := a.Client.Get(ctx, client.ObjectKey{Name: a.Policy}, &admissionv1.MutatingAdmissionPolicyBinding{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) && !meta.IsNoMatchError(err) {
		ctrl.LoggerFrom(ctx).Error(err, "it is not known whether the API server pauses Deployments", "mutatingadmissionpolicybinding", a.Policy)
	}
	return err == nil
}

// unpause unpauses Deployments. If one cannot be unpaused, the others still are.
func (a *Abandoned) unpause(ctx context.Context, keys []types.NamespacedName) error {
	errs := make([]error, len(keys))
	for i, key := range keys {
		errs[i] = unpause(ctx, a.Deployments, a.Client, key)
	}
	return errors.Join(errs...)
}
