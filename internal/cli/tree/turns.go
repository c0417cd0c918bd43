// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/statefulsets"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

const (
	// mostTurns is in how many namespaces coordinations are looked for, and how many
	// rollout groups are read.
	mostTurns = 10
	// mostSets is how many sets a rollout group may have. The pods of each are read.
	mostSets = 20
)

// turns returns the group of what rolls out one after the other: coordinations of the
// Deployments in the tree, and the rollout groups of its StatefulSets. It returns nil if
// there is none.
func (b *below) turns(ctx context.Context, now time.Time) *Node {
	namespaces, moreNamespaces := first(b.namespaces())
	groups, moreGroups := first(b.groups())
	nodes := make([][]*Node, len(namespaces)+len(groups))
	for i, namespace := range namespaces {
		b.start(func() { nodes[i] = b.coordinations(ctx, namespace) })
	}
	for i, group := range groups {
		b.start(func() { nodes[len(namespaces)+i] = []*Node{b.rolloutGroup(ctx, group, now)} })
	}
	b.wait()
	all := &Node{Name: "Turns", Children: slices.Concat(nodes...)}
	if more := moreNamespaces + moreGroups; more > 0 {
		all.Children = append(all.Children, missing("not read", fmt.Sprintf("turns in %d more namespaces and rollout groups were not read", more)))
	}
	if len(all.Children) == 0 {
		return nil
	}
	return summed(all, "")
}

// first returns the first ones, and how many there are more.
func first[T any](all []T) (some []T, more int) {
	return all[:min(len(all), mostTurns)], max(len(all)-mostTurns, 0)
}

// namespaces returns those with Deployments, sorted.
func (b *below) namespaces() []string {
	var all []string
	for _, w := range b.workloads {
		if w.node.Object.Kind == "Deployment" {
			all = append(all, w.node.Object.Namespace)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// groups returns the rollout groups of the StatefulSets, sorted.
func (b *below) groups() []types.NamespacedName {
	var all []types.NamespacedName
	for _, w := range b.workloads {
		if name := w.object.GetLabels()[rolloutgroup.Label]; name != "" && w.node.Object.Kind == "StatefulSet" {
			all = append(all, types.NamespacedName{Namespace: w.node.Object.Namespace, Name: name})
		}
	}
	slices.SortFunc(all, func(x, y types.NamespacedName) int { return strings.Compare(x.String(), y.String()) })
	return slices.Compact(all)
}

// coordinations returns those that have a Deployment of the tree in their status. Where
// the API server does not serve them, there are none.
func (b *below) coordinations(ctx context.Context, namespace string) []*Node {
	list := &coordinationv1.DeploymentCoordinationList{}
	err := b.from.List(ctx, list, client.InNamespace(namespace), client.Limit(pageSize))
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return []*Node{missing("coordinations", "DeploymentCoordinations of namespace "+namespace+": "+because(err))}
	}
	var all []*Node
	if list.Continue != "" {
		all = append(all, missing("coordinations", fmt.Sprintf(
			"only the first %d DeploymentCoordinations of namespace %s were read", len(list.Items), namespace)))
	}
	for i := range list.Items {
		if c := &list.Items[i]; slices.ContainsFunc(b.workloads, func(w read) bool { return coordinates(c, w) }) {
			all = append(all, coordinationNode(c))
		}
	}
	return all
}

func coordinates(c *coordinationv1.DeploymentCoordination, w read) bool {
	return w.node.Object.Kind == "Deployment" &&
		slices.Contains(c.Status.Deployments, w.node.Object.Namespace+"/"+w.node.Object.Name)
}

// coordinationNode shows a coordination in the words of its conditions, and each of its
// Deployments.
func coordinationNode(c *coordinationv1.DeploymentCoordination) *Node {
	node := &Node{
		Object: &Object{
			Group: coordinationv1.GroupVersion.Group, Version: coordinationv1.GroupVersion.Version,
			Kind: coordinationv1.DeploymentCoordinationKind, Namespace: c.Namespace, Name: c.Name, UID: c.UID,
		},
		Conditions: c.Status.Conditions,
	}
	if node.Sign, node.Message = coordinationState(c.Status.Conditions); node.Sign != Well {
		node.Text = node.Message
	}
	for _, state := range c.Status.DeploymentStates {
		node.Children = append(node.Children, deploymentNode(state, c.Status.HasTurn(state.Name)))
	}
	return node
}

// coordinationState returns the sign and the message of the condition that matters most.
func coordinationState(conditions []metav1.Condition) (Sign, string) {
	for _, c := range []struct {
		kind string
		sign Sign
	}{
		{coordinationv1.StalledCondition, Failed},
		{coordinationv1.DegradedCondition, Failed},
		{coordinationv1.ProgressingCondition, Waits},
		{coordinationv1.ReadyCondition, Well},
	} {
		if at := meta.FindStatusCondition(conditions, c.kind); at != nil && at.Status == metav1.ConditionTrue {
			return c.sign, at.Message
		}
	}
	return Unknown, "it has not reported its state"
}

func deploymentNode(state coordinationv1.DeploymentState, active bool) *Node {
	namespace, name, _ := strings.Cut(state.Name, "/")
	node := &Node{
		Object: &Object{
			Group: appsv1.GroupName, Version: "v1", Kind: "Deployment", Namespace: namespace, Name: name, UID: state.UID,
		},
		Sign: Well,
	}
	switch {
	case active:
		node.Sign, node.Text = Waits, "has the turn"
	case state.HasPendingChanges:
		node.Sign, node.Text = Waits, "waits for its turn"
	}
	return node
}

// rolloutGroup shows what the decision about a rollout group says now.
func (b *below) rolloutGroup(ctx context.Context, key types.NamespacedName, now time.Time) *Node {
	node := &Node{Name: fmt.Sprintf("rollout group %s/%s", key.Namespace, key.Name)}
	group, err := b.groupFacts(ctx, key, now)
	if err != nil {
		node.say(Unknown, because(err))
		return node
	}
	plan := statefulsets.Decide(group)
	node.say(planSign(plan), plan.Message)
	turn := statefulsets.Turn(group)
	for _, set := range group.Sets {
		node.Children = append(node.Children, setNode(key.Namespace, set, turn))
	}
	return node
}

// planSign returns the sign of a plan. A plan that is blocked only for a moment is reported
// on no set.
func planSign(plan statefulsets.Plan) Sign {
	switch plan.State {
	case statefulsets.Done:
		return Well
	case statefulsets.Waiting, statefulsets.Rolling:
		return Waits
	case statefulsets.Blocked, statefulsets.Invalid:
	}
	switch {
	case plan.Reason == rolloutgroup.RolloutPausedReason:
		return Suspended
	case len(plan.About) == 0:
		return Waits
	}
	return Failed
}

func setNode(namespace string, set statefulsets.Set, turn string) *Node {
	node := &Node{
		Object: &Object{
			Group: appsv1.GroupName, Version: "v1", Kind: "StatefulSet", Namespace: namespace, Name: set.Name, UID: set.UID,
		},
		Sign: Well,
	}
	switch {
	case set.Name == turn:
		node.Sign, node.Text = Waits, "has the turn"
	case set.Paused && set.StatusUpdated < set.StatusReplicas:
		node.Sign, node.Text = Suspended, "is paused by the annotation "+rolloutgroup.PausedAnnotation
	case set.StatusUpdated < set.StatusReplicas:
		node.Sign, node.Text = Waits, "waits for its turn"
	}
	return node
}

// groupFacts reads the sets of a group and their pods.
func (b *below) groupFacts(ctx context.Context, key types.NamespacedName, now time.Time) (statefulsets.Group, error) {
	group := statefulsets.Group{Now: now}
	sets := &appsv1.StatefulSetList{}
	in := client.InNamespace(key.Namespace)
	if err := b.from.List(ctx, sets, in, client.MatchingLabels{rolloutgroup.Label: key.Name}, client.Limit(pageSize)); err != nil {
		return group, fmt.Errorf("list the StatefulSets of rollout group %s: %w", key, err)
	}
	if len(sets.Items) > mostSets {
		return group, fmt.Errorf("rollout group %s has %d StatefulSets, and at most %d are read", key, len(sets.Items), mostSets)
	}
	for i := range sets.Items {
		set, err := b.setFacts(ctx, &sets.Items[i])
		if err != nil {
			return group, err
		}
		group.Sets = append(group.Sets, set)
	}
	return group, nil
}

func (b *below) setFacts(ctx context.Context, set *appsv1.StatefulSet) (statefulsets.Set, error) {
	known := workload.SetFacts(set)
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	if err != nil {
		return known, fmt.Errorf("read the selector of StatefulSet %s: %w", set.Name, err)
	}
	pods := &corev1.PodList{}
	if err := b.from.List(ctx, pods, client.InNamespace(set.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(pageSize)); err != nil {
		return known, fmt.Errorf("list the pods of StatefulSet %s: %w", set.Name, err)
	}
	if pods.Continue != "" {
		return known, fmt.Errorf("StatefulSet %s has more than %d pods, and no more are read", set.Name, pageSize)
	}
	for i := range pods.Items {
		if metav1.IsControlledBy(&pods.Items[i], set) {
			known.Pods = append(known.Pods, workload.PodFacts(&pods.Items[i]))
		}
	}
	return known, nil
}
