// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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

// gather reads a namespace. A read failure is part of the input, in Unreadable.
func (r *Reconciler) gather(ctx context.Context, from client.Reader, namespace string) snapshot {
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
	live := r.gather(ctx, r.APIReader, cached.namespace)
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

func (r *Reconciler) gatherCoordinations(ctx context.Context, from client.Reader, w *snapshot) error {
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

func (r *Reconciler) gatherDeployments(ctx context.Context, from client.Reader, w *snapshot) error {
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

// setsOf returns the ReplicaSets of a namespace by the UID of their owner.
func setsOf(ctx context.Context, from client.Reader, namespace string) (map[types.UID][]*appsv1.ReplicaSet, error) {
	list := &appsv1.ReplicaSetList{}
	if err := from.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list ReplicaSets: %w", err)
	}
	sets := map[types.UID][]*appsv1.ReplicaSet{}
	for i := range list.Items {
		set := &list.Items[i]
		if owner := metav1.GetControllerOfNoCopy(set); owner != nil {
			trimReplicaSet(set)
			sets[owner.UID] = append(sets[owner.UID], set)
		}
	}
	return sets, nil
}
