// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// Limits bound what one tree reads. Users can write the inventories that a tree follows.
type Limits struct {
	// Objects is how many objects below the targets are read. Defaults to 2,000. What is
	// not read is in the tree, with the sign Unknown.
	Objects int
	// Requests is how many requests are sent at the same time. Defaults to 8.
	Requests int
}

const (
	defaultObjects  = 2000
	defaultRequests = 8
)

func (l Limits) orDefault() Limits {
	if l.Objects <= 0 {
		l.Objects = defaultObjects
	}
	if l.Requests <= 0 {
		l.Requests = defaultRequests
	}
	return l
}

// Builder builds trees.
type Builder struct {
	// Reader reads what is below the targets: objects of any kind, most of them as
	// unstructured objects, Deployments' pods and the coordinations with their Go types.
	Reader client.Reader
	// Limits bound what is read; the zero value means the defaults.
	Limits Limits
}

// Build returns the tree of a Rollout, given what was gathered about it and the decision
// on that. Nothing is folded yet, see [Tree.Fold]. All that could not be read is in the
// tree, so there is no error.
func (b Builder) Build(ctx context.Context, s gather.Snapshot, d promotion.Decision) Tree {
	t := Tree{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: Kind},
		Time:     metav1.NewTime(s.Now.UTC()),
		Head:     headOf(s.Input, d),
	}
	read := newReading(b.Reader, b.Limits.orDefault())
	targets, applied := targetsOf(s, d)
	under := &below{reading: read, known: map[Object]bool{}}
	under.fill(ctx, applied)
	t.Root = rootOf(s.Rollout, t.Head)
	t.Root.Children = []*Node{gatesOf(s.Input, d), schedulesOf(s.Input), healthOf(s.Input), targets}
	t.Root.Children = inserted(t.Root.Children, 2, quarantinesOf(s.Input, d))
	t.Root.Children = inserted(t.Root.Children, 2, environmentsOf(s.Input, d))
	if turns := under.turns(ctx, s.Now); turns != nil {
		t.Root.Children = append(t.Root.Children, turns)
	}
	return t
}

// rootOf returns the node of the Rollout.
func rootOf(rollout *v1alpha1.Rollout, head Head) *Node {
	return &Node{
		Object: &Object{
			Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: v1alpha1.RolloutKind,
			Namespace: rollout.Namespace, Name: rollout.Name, UID: rollout.UID,
		},
		Sign:       headSign(head),
		Text:       head.State,
		Message:    head.StateMessage,
		Conditions: rollout.Status.Conditions,
	}
}

// headSign returns the sign of the state of a bake.
func headSign(h Head) Sign {
	if h.Suspended {
		return Suspended
	}
	switch v1alpha1.BakeStatus(h.State) {
	case v1alpha1.BakeSucceeded:
		return Well
	case v1alpha1.BakeFailed:
		return Failed
	case v1alpha1.BakeDeploying, v1alpha1.BakeInProgress, "":
		return Waits
	case v1alpha1.BakeCancelled:
	}
	return Unknown
}
