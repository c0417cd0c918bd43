// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
)

// controllerOnly is the message of the condition HoldMode without admission.
const controllerOnly = "Deployments are paused after they were created or changed, as soon as the controller sees it"

// snapshot is what was read of a namespace, and the input of the plan.
type snapshot struct {
	deployments.Input

	namespace     string
	coordinations map[string]*coordinationv1.DeploymentCoordination
	// deployments contains Deployments by namespace/name.
	deployments map[string]*appsv1.Deployment
}

// perPage is how many ReplicaSets are in memory at a time when they are read past the
// caches. A namespace has some for each Deployment, and may have thousands.
const perPage = 500

// origin is what is read from.
type origin struct {
	client.Reader
	page int64 // how many objects one request asks for; a cache has no pages
}

// gather reads a namespace. A read failure is part of the input, in Unreadable.
func (r *Reconciler) gather(ctx context.Context, from origin, namespace string) snapshot {
	w := snapshot{
		namespace:     namespace,
		coordinations: map[string]*coordinationv1.DeploymentCoordination{},
		deployments:   map[string]*appsv1.Deployment{},
	}
	w.Now = r.Now()
	w.HoldMode, w.Other = r.holdMode(namespace)
	if w.Unreadable = r.gatherCoordinations(ctx, from, &w); w.Unreadable == nil {
		w.Unreadable = r.gatherDeployments(ctx, from, &w)
	}
	return w
}

// confirm reads again, without the cache, what a plan is about to act on. If that fails,
// the plan is made again with the cached objects and the failure.
func (r *Reconciler) confirm(ctx context.Context, cached snapshot) snapshot {
	live := r.gather(ctx, origin{r.APIReader, perPage}, cached.namespace)
	if live.Unreadable != nil {
		cached.Unreadable = live.Unreadable
		return cached
	}
	return live
}

func (r *Reconciler) holdMode(namespace string) (mode deployments.AdmissionMode, other string) {
	if r.Admission == nil {
		return deployments.AdmissionMode{Reason: coordinationv1.ControllerOnlyReason, Message: controllerOnly}, ""
	}
	reason, message := r.Admission.Mode(namespace)
	return deployments.AdmissionMode{Reason: reason, Message: message}, r.Admission.Other()
}

func (r *Reconciler) gatherCoordinations(ctx context.Context, from origin, w *snapshot) error {
	list := &coordinationv1.DeploymentCoordinationList{}
	if err := from.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
		return fmt.Errorf("list DeploymentCoordinations: %w", err)
	}
	for i := range list.Items {
		c := &list.Items[i]
		if !c.DeletionTimestamp.IsZero() {
			continue
		}
		w.coordinations[c.Name] = c
		w.Coordinations = append(w.Coordinations, deployments.Coordination{
			Name: c.Name, Generation: c.Generation, Spec: c.Spec, Journal: c.Status,
		})
	}
	return nil
}

func (r *Reconciler) gatherDeployments(ctx context.Context, from origin, w *snapshot) error {
	sets, err := setsOf(ctx, from, w.namespace)
	if err != nil {
		return err
	}
	list := &appsv1.DeploymentList{}
	if err := from.List(ctx, list, client.InNamespace(w.namespace)); err != nil {
		return fmt.Errorf("list Deployments: %w", err)
	}
	for i := range list.Items {
		d := &list.Items[i]
		key := client.ObjectKeyFromObject(d)
		if key == r.Self || !d.DeletionTimestamp.IsZero() {
			continue
		}
		trimDeployment(d)
		facts := factsOf(d, sets[d.UID])
		facts.WriteError = r.retries.failure(key.String())
		facts.WasPaused = r.holds.has(d)
		w.deployments[key.String()] = d
		w.Deployments = append(w.Deployments, facts)
	}
	r.holds.keep(w.namespace, w.deployments)
	return nil
}

// replicaSet is what a plan depends on of a ReplicaSet.
type replicaSet struct {
	name     string
	created  time.Time
	template string // its identity
	replicas int32
}

// setsOf returns the ReplicaSets of a namespace by the UID of their owner.
func setsOf(ctx context.Context, from origin, namespace string) (map[types.UID][]replicaSet, error) {
	sets := map[types.UID][]replicaSet{}
	for next := ""; ; {
		list := &appsv1.ReplicaSetList{}
		err := from.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy, client.Limit(from.page), client.Continue(next))
		if err != nil {
			return nil, fmt.Errorf("list ReplicaSets: %w", err)
		}
		for i := range list.Items {
			set := &list.Items[i]
			if owner := metav1.GetControllerOfNoCopy(set); owner != nil {
				sets[owner.UID] = append(sets[owner.UID], replicaSet{
					name: set.Name, created: set.CreationTimestamp.Time, template: templateOf(&set.Spec.Template), replicas: ptr.Deref(set.Spec.Replicas, 0),
				})
			}
		}
		if next = list.Continue; next == "" || from.page == 0 { // a cache has no pages, and does not say so
			return sets, nil
		}
	}
}
