// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// schedulesOf names the schedules that select a Rollout, sorted. A selector
// that cannot be parsed is taken to select: a freeze must not be lost to a
// typing error.
func (r *RolloutReconciler) schedulesOf(ctx context.Context, rollout *v1alpha1.Rollout) ([]string, error) {
	schedules := &v1alpha1.RolloutScheduleList{}
	if err := r.Client.List(ctx, schedules, client.InNamespace(rollout.Namespace)); err != nil {
		return nil, fmt.Errorf("list RolloutSchedules: %w", err)
	}
	var names []string
	for i := range schedules.Items {
		if selects(schedules.Items[i].Spec.RolloutSelector, rollout.Labels) {
			names = append(names, "RolloutSchedule "+schedules.Items[i].Name)
		}
	}
	cluster, err := r.clusterSchedulesOf(ctx, rollout)
	names = append(names, cluster...)
	slices.Sort(names)
	return names, err
}

func (r *RolloutReconciler) clusterSchedulesOf(ctx context.Context, rollout *v1alpha1.Rollout) ([]string, error) {
	schedules := &v1alpha1.ClusterRolloutScheduleList{}
	if err := r.Client.List(ctx, schedules); err != nil {
		return nil, fmt.Errorf("list ClusterRolloutSchedules: %w", err)
	}
	var names []string
	for i := range schedules.Items {
		spec := &schedules.Items[i].Spec
		if !selects(spec.RolloutSelector, rollout.Labels) {
			continue
		}
		inNamespace, err := r.selectsNamespace(ctx, spec.NamespaceSelector, rollout.Namespace)
		if err != nil {
			return nil, err
		}
		if inNamespace {
			names = append(names, "ClusterRolloutSchedule "+schedules.Items[i].Name)
		}
	}
	return names, nil
}

// selectsNamespace: an absent selector selects all namespaces.
func (r *RolloutReconciler) selectsNamespace(ctx context.Context, selector *metav1.LabelSelector, name string) (bool, error) {
	if selector == nil {
		return true, nil
	}
	namespace := namespaceObject()
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, namespace); err != nil {
		return false, fmt.Errorf("get namespace %s: %w", name, err)
	}
	return selects(selector, namespace.Labels), nil
}

func selects(selector *metav1.LabelSelector, set map[string]string) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err != nil || parsed.Matches(labels.Set(set))
}
