// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"cmp"
	"slices"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
)

// key is what an upstream is named by. Its cluster is empty for this one.
type key struct{ cluster, namespace, application, environment, rollout string }

func keyOf(e *environmentsv1.Environment) key {
	return key{"", e.Namespace, e.Spec.Name, e.Spec.Environment, e.Spec.RolloutRef.Name}
}

func upstreamKey(e *environmentsv1.Environment, u environmentsv1.Upstream) key {
	k := key{"", u.Namespace, e.Spec.Name, u.Environment, u.Rollout}
	if u.IsRemote() {
		k.cluster = u.Cluster
	}
	return k
}

// node is one environment.
type node struct {
	key
	// object is nil for an environment that others name, and that was not found, or is in
	// another cluster.
	object *environmentsv1.Environment
	// after are the environments from which it takes its releases.
	after []*node
	// neighbours are all that belong to the same pipeline.
	neighbours []*node
	// before are all from which releases come here, at any distance. It has the node
	// itself if the node comes after itself.
	before map[*node]bool
	// level is how many environments a release passes before.
	level int
}

// graph has the environments of all applications.
type graph struct {
	nodes []*node
	byKey map[key][]*node
}

func graphOf(environments []environmentsv1.Environment) graph {
	g := graph{byKey: map[key][]*node{}}
	type place struct{ namespace, application string }
	first := map[place]*node{}
	for i := range environments {
		n := g.add(keyOf(&environments[i]), &environments[i])
		here := place{n.namespace, n.application}
		if first[here] == nil {
			first[here] = n
		}
		join(first[here], n)
	}
	for _, n := range slices.Clone(g.nodes) {
		g.connect(n)
	}
	for _, n := range g.nodes {
		n.before = map[*node]bool{}
		n.collect(n.before)
	}
	for _, n := range g.nodes {
		n.level = n.depth()
	}
	return g
}

func (g *graph) add(k key, object *environmentsv1.Environment) *node {
	n := &node{key: k, object: object, level: -1}
	g.nodes = append(g.nodes, n)
	g.byKey[k] = append(g.byKey[k], n)
	return n
}

// connect connects an Environment with its upstreams. One that was not found has a node as
// well.
func (g *graph) connect(n *node) {
	for _, u := range n.object.GetUpstreams() {
		k := upstreamKey(n.object, u)
		if g.byKey[k] == nil {
			g.add(k, nil)
		}
		for _, upstream := range g.byKey[k] {
			join(n, upstream)
			if u.Type != environmentsv1.Parallel {
				n.after = append(n.after, upstream)
			}
		}
	}
}

func join(a, b *node) {
	if a != b {
		a.neighbours, b.neighbours = append(a.neighbours, b), append(b.neighbours, a)
	}
}

// collect adds all from which releases come to the node.
func (n *node) collect(before map[*node]bool) {
	for _, upstream := range n.after {
		if !before[upstream] {
			before[upstream] = true
			upstream.collect(before)
		}
	}
}

func (n *node) isInCycle() bool { return n.before[n] }

// depth returns how many environments a release passes before. Between environments that
// come after each other, there is no order.
func (n *node) depth() int {
	if n.level >= 0 {
		return n.level
	}
	n.level = 0
	for _, upstream := range n.after {
		if !upstream.before[n] {
			n.level = max(n.level, upstream.depth()+1)
		}
	}
	return n.level
}

// roots are the environments from which the releases of a node come first. The root of a
// first environment is itself.
func (n *node) roots() []*node {
	var all []*node
	for upstream := range n.before {
		if len(upstream.after) == 0 {
			all = append(all, upstream)
		}
	}
	if len(n.after) == 0 {
		all = append(all, n)
	}
	return all
}

// parts returns the nodes that belong together, each part in the order in which a release
// passes them.
func (g graph) parts() [][]*node {
	var parts [][]*node
	seen := map[*node]bool{}
	for _, n := range g.nodes {
		if part := n.part(seen); len(part) > 0 {
			slices.SortFunc(part, inOrder)
			parts = append(parts, part)
		}
	}
	return parts
}

// part returns all that belongs to the same pipeline and was not seen yet.
func (n *node) part(seen map[*node]bool) []*node {
	if seen[n] {
		return nil
	}
	seen[n] = true
	part := []*node{n}
	for i := 0; i < len(part); i++ {
		for _, neighbour := range part[i].neighbours {
			if !seen[neighbour] {
				seen[neighbour] = true
				part = append(part, neighbour)
			}
		}
	}
	return part
}

func inOrder(a, b *node) int {
	return cmp.Or(cmp.Compare(a.level, b.level), cmp.Compare(a.environment, b.environment), cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.namespace, b.namespace),
		cmp.Compare(a.rollout, b.rollout), cmp.Compare(a.name(), b.name()))
}

// name returns the name of the object; empty if there is none.
func (n *node) name() string {
	if n.object == nil {
		return ""
	}
	return n.object.Name
}
