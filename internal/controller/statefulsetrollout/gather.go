// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/statefulsets"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

// gathered is a group as it was read.
type gathered struct {
	key   types.NamespacedName
	sets  map[string]*appsv1.StatefulSet
	facts statefulsets.Group
}

// known reports whether the group has any sets.
func (r *Reconciler) known(ctx context.Context, key types.NamespacedName) (bool, error) {
	sets, err := setsOf(ctx, r.Client, key, client.Limit(1))
	return len(sets) > 0, err
}

// gather reads the group from the cache. A set that this controller has finished counts
// as finished even before the cache shows it.
func (r *Reconciler) gather(ctx context.Context, key types.NamespacedName, m *memory) (gathered, error) {
	g, err := r.read(ctx, r.Client, key, m, func(set *appsv1.StatefulSet) (client.ListOption, error) {
		return client.MatchingFields{controllerUID: string(set.UID)}, nil
	})
	if err != nil {
		return g, err
	}
	m.prune(g.facts.Sets)
	for i := range g.facts.Sets {
		if set := &g.facts.Sets[i]; r.writes.Stale(g.sets[set.Name]) {
			set.CurrentRevision = set.UpdateRevision
		}
	}
	return g, nil
}

// gatherLive reads the group without the cache. All pods that a set controls match its
// selector, because the StatefulSet controller gives up its ownership of any other pod.
func (r *Reconciler) gatherLive(ctx context.Context, key types.NamespacedName, m *memory) (gathered, error) {
	return r.read(ctx, r.APIReader, key, m, func(set *appsv1.StatefulSet) (client.ListOption, error) {
		selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
		return client.MatchingLabelsSelector{Selector: selector}, err
	})
}

func (r *Reconciler) read(
	ctx context.Context, from client.Reader, key types.NamespacedName, m *memory,
	podsOf func(*appsv1.StatefulSet) (client.ListOption, error),
) (gathered, error) {
	g := gathered{key: key, sets: map[string]*appsv1.StatefulSet{}, facts: statefulsets.Group{Now: r.Now(), Last: m.last, Deleted: m.deleted}}
	sets, err := setsOf(ctx, from, key)
	if err != nil {
		return g, err
	}
	for i := range sets {
		set := &sets[i]
		known := workload.SetFacts(set)
		known.UnobservedSince = m.unobservedSince(&known, g.facts.Now)
		which, err := podsOf(set)
		if err != nil {
			return g, fmt.Errorf("read the selector of StatefulSet %s: %w", set.Name, err)
		}
		var pods corev1.PodList
		if err := from.List(ctx, &pods, client.InNamespace(key.Namespace), which); err != nil {
			return g, fmt.Errorf("list the pods of StatefulSet %s: %w", set.Name, err)
		}
		for j := range pods.Items {
			if metav1.IsControlledBy(&pods.Items[j], set) {
				known.Pods = append(known.Pods, workload.PodFacts(&pods.Items[j]))
			}
		}
		g.sets[set.Name] = set
		g.facts.Sets = append(g.facts.Sets, known)
	}
	return g, nil
}

func setsOf(ctx context.Context, from client.Reader, key types.NamespacedName, more ...client.ListOption) ([]appsv1.StatefulSet, error) {
	var list appsv1.StatefulSetList
	options := append(more, client.InNamespace(key.Namespace), client.MatchingLabels{rolloutgroup.Label: key.Name})
	if err := from.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("list the StatefulSets of rollout group %s: %w", key, err)
	}
	return list.Items, nil
}
