// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// gatherSchedules evaluates the schedules that select the Rollout. Their state counts,
// not that of their gates: a gate may be missing or outdated. A gate whose schedule was
// deleted, or selects the Rollout no more, counts like any other until it is removed.
func (r *RolloutReconciler) gatherSchedules(ctx context.Context, w *snapshot) error {
	schedules, err := r.schedulesOf(ctx, w.Rollout)
	open := map[types.UID]bool{}
	for _, t := range schedules {
		window := t.window(w.Now)
		w.Gates.Schedules = append(w.Gates.Schedules, window)
		open[t.GetUID()] = window.Open
	}
	all := w.Gates.Gates
	w.Gates.Gates = nil
	for _, gate := range all {
		if passing, ok := open[ownerOf(&gate)]; ok {
			gate.Spec.Passing, gate.Spec.AllowedVersions = &passing, nil
			w.Gates.Copies = append(w.Gates.Copies, gate)
			continue
		}
		w.Gates.Gates = append(w.Gates.Gates, gate)
	}
	return err
}

// ownerOf returns the UID of the controller of an object; empty if it has none.
func ownerOf(o client.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return owner.UID
	}
	return ""
}

// schedulesOf returns the schedules that select a Rollout, sorted by kind and name. A
// schedule that is being deleted selects nothing any more.
func (r *RolloutReconciler) schedulesOf(ctx context.Context, rollout *v1alpha1.Rollout) ([]scheduleObject, error) {
	own, err := schedulesIn(ctx, r.Client, rollout.Namespace)
	if err != nil {
		return nil, err
	}
	cluster, err := clusterSchedules(ctx, r.Client)
	if err != nil {
		return nil, err
	}
	var selecting []scheduleObject
	for _, t := range append(own, cluster...) {
		if !t.GetDeletionTimestamp().IsZero() || !selects(t.spec.RolloutSelector, rollout.Labels) {
			continue
		}
		inNamespace, err := selectsNamespace(ctx, r.Client, t.namespaces, rollout.Namespace)
		if err != nil {
			return nil, err
		}
		if !inNamespace {
			continue
		}
		if err := unreadable.Of(t.Object); err != nil {
			return nil, err
		}
		selecting = append(selecting, t)
	}
	slices.SortFunc(selecting, func(a, b scheduleObject) int { return strings.Compare(a.String(), b.String()) })
	return selecting, nil
}

// selectsNamespace reports whether a namespace is selected. An absent selector selects
// all.
func selectsNamespace(ctx context.Context, c client.Reader, selector *metav1.LabelSelector, name string) (bool, error) {
	if selector == nil {
		return true, nil
	}
	namespace := namespaceObject()
	if err := c.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return false, fmt.Errorf("get namespace %s: %w", name, err)
	}
	return selects(selector, namespace.Labels), nil
}

// rolloutsOfSchedule maps a schedule to the Rollouts that it may select.
func (r *RolloutReconciler) rolloutsOfSchedule(ctx context.Context, o client.Object) []reconcile.Request {
	rollouts, err := rolloutsWith(ctx, r.Client, scheduleObjectOf(o))
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list Rollouts of a schedule")
		return nil
	}
	var requests []reconcile.Request
	for _, rollout := range rollouts {
		requests = append(requests, named(rollout, rollout.Name)...)
	}
	return requests
}

// rolloutsWith returns the Rollouts whose labels a schedule selects, whatever the labels
// of their namespace. They belong to the cache and must not be changed.
func rolloutsWith(ctx context.Context, c client.Reader, t scheduleObject) ([]*v1alpha1.Rollout, error) {
	list := &v1alpha1.RolloutList{}
	if err := c.List(ctx, list, client.InNamespace(t.GetNamespace()), client.UnsafeDisableDeepCopy, unreadable.Left{}); err != nil {
		return nil, fmt.Errorf("list Rollouts: %w", err)
	}
	var selected []*v1alpha1.Rollout
	for i := range list.Items {
		if rollout := &list.Items[i]; selects(t.spec.RolloutSelector, rollout.Labels) {
			selected = append(selected, rollout)
		}
	}
	return selected, nil
}
