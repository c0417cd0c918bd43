// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// gatherClusterGates reads the ClusterRolloutGates that select the Rollout.
func (g Gatherer) gatherClusterGates(ctx context.Context, s *Snapshot) error {
	if !g.Approvals {
		return nil
	}
	all, err := ClusterGates(ctx, g.Client)
	if err != nil {
		return err
	}
	for i := range all {
		selected, err := g.gateSelects(ctx, &all[i], s.Rollout)
		if err != nil {
			return err
		}
		if selected {
			s.Gates.Cluster = append(s.Gates.Cluster, all[i])
		}
	}
	return nil
}

// gateSelects reports whether a gate selects a Rollout. It is an error if the rest of that gate
// cannot be decoded.
func (g Gatherer) gateSelects(ctx context.Context, gate *v1alpha1.ClusterRolloutGate, rollout *v1alpha1.Rollout) (bool, error) {
	if !gate.DeletionTimestamp.IsZero() || !GateSelectsRollout(gate, rollout) {
		return false, nil
	}
	selected, err := g.selectsNamespace(ctx, gate.Spec.NamespaceSelector, rollout.Namespace)
	if err != nil || !selected {
		return false, err
	}
	return true, unreadable.Of(gate)
}

// ClusterGates returns the ClusterRolloutGates, sorted by name, including those that cannot be
// decoded: what they select is known anyway. They belong to the cache and must not be changed.
func ClusterGates(ctx context.Context, c client.Reader) ([]v1alpha1.ClusterRolloutGate, error) {
	list := &v1alpha1.ClusterRolloutGateList{}
	if err := c.List(ctx, list, client.UnsafeDisableDeepCopy, unreadable.Left{}); err != nil {
		return nil, fmt.Errorf("list ClusterRolloutGates: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.ClusterRolloutGate) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// RolloutsOfGate returns the Rollouts whose labels a ClusterRolloutGate selects, whatever the
// labels of their namespace. They belong to the cache and must not be changed.
func RolloutsOfGate(ctx context.Context, c client.Reader, gate *v1alpha1.ClusterRolloutGate) ([]*v1alpha1.Rollout, error) {
	list := &v1alpha1.RolloutList{}
	if err := c.List(ctx, list, client.UnsafeDisableDeepCopy, unreadable.Left{}); err != nil {
		return nil, fmt.Errorf("list Rollouts: %w", err)
	}
	var selected []*v1alpha1.Rollout
	for i := range list.Items {
		if GateSelectsRollout(gate, &list.Items[i]) {
			selected = append(selected, &list.Items[i])
		}
	}
	return selected, nil
}

// GateSelectsRollout reports whether a ClusterRolloutGate selects the labels of a Rollout.
func GateSelectsRollout(gate *v1alpha1.ClusterRolloutGate, rollout client.Object) bool {
	return gate.Spec.RolloutSelector == nil || selects(gate.Spec.RolloutSelector, rollout.GetLabels())
}

// GateSelectsNamespace reports whether it selects namespaces with these labels.
func GateSelectsNamespace(gate *v1alpha1.ClusterRolloutGate, labels map[string]string) bool {
	return gate.Spec.NamespaceSelector == nil || selects(gate.Spec.NamespaceSelector, labels)
}

// InvalidGateSelector returns why a selector of a gate cannot be parsed; nil if both can.
func InvalidGateSelector(gate *v1alpha1.ClusterRolloutGate) error {
	if _, err := metav1.LabelSelectorAsSelector(gate.Spec.RolloutSelector); err != nil {
		return fmt.Errorf("spec.rolloutSelector cannot be used: %w", err)
	}
	if _, err := metav1.LabelSelectorAsSelector(gate.Spec.NamespaceSelector); err != nil {
		return fmt.Errorf("spec.namespaceSelector cannot be used: %w", err)
	}
	return nil
}
