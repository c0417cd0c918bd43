// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"slices"
	"strings"
)

// Folding is how much of a tree is shown. The zero value shows what matters at a glance.
type Folding struct {
	// All shows every node by itself. The two below are then of no importance.
	All bool
	// Echo shows children that only repeat what their parent says.
	Echo bool
	// Single shows each of several siblings that are in the same state.
	Single bool
	// Conditions keeps the conditions of objects of these kinds, or of all with "all". The
	// case of the letters does not matter.
	Conditions []string
}

// mostNames is how many names of folded nodes are kept.
const mostNames = 3

// Fold returns the tree without what does not matter at a glance. The targets and the
// groups are always shown. The receiver stays as it is. [Events] needs a tree that is not
// folded.
func (t Tree) Fold(f Folding) Tree {
	root := f.bare(t.Root)
	for _, group := range t.Root.Children {
		root.Children = append(root.Children, f.node(group))
	}
	t.Root = root
	return t
}

// bare returns a copy of a node without its children.
func (f Folding) bare(of *Node) *Node {
	n := *of
	n.Children = nil
	if !f.showsConditions(n.Object) {
		n.Conditions = nil
	}
	return &n
}

// node returns a copy of a node with its children folded.
func (f Folding) node(of *Node) *Node {
	n := f.bare(of)
	for _, child := range of.Children {
		if f.All || f.Echo || !echoes(child, of) {
			n.Children = append(n.Children, f.node(child))
		}
	}
	if f.All {
		return n
	}
	n.foldWell()
	if !f.Single {
		n.Children = grouped(n.Children)
	}
	return n
}

func (f Folding) showsConditions(o *Object) bool {
	return o != nil && slices.ContainsFunc(f.Conditions, func(kind string) bool {
		return strings.EqualFold(kind, "all") || strings.EqualFold(kind, o.Kind)
	})
}

// echoes reports whether a child only says what its parent says.
func echoes(child, parent *Node) bool {
	return len(child.Children) == 0 && child.Sign == parent.Sign && child.Message != "" && child.Message == parent.Message
}

// foldWell leaves out the children that are well, with all below them. If all are, the
// node itself counts them. Otherwise one more child does.
func (n *Node) foldWell() {
	var well, others []*Node
	for _, child := range n.Children {
		if child.isWell() {
			well = append(well, child)
			continue
		}
		others = append(others, child)
	}
	switch {
	case len(well) == 0:
	case len(others) == 0:
		n.Children, n.Folded = nil, counted(well)
	default:
		n.Children = append(others, &Node{Sign: Well, Folded: counted(well)})
	}
}

// isWell reports whether nothing at or below a node has to be shown. Conditions that a
// user has asked for have, and so have numbers that are still being measured.
func (n *Node) isWell() bool {
	return n.Sign == Well && !n.Target && len(n.Conditions) == 0 && !n.showsNumbers() &&
		!slices.ContainsFunc(n.Children, func(c *Node) bool { return !c.isWell() })
}

// showsNumbers reports whether a node is about a HealthCheck that is being measured, or
// cannot be.
func (n *Node) showsNumbers() bool {
	return n.Measured != nil && (n.Measured.Next != nil || n.Measured.Problem != "")
}

// counted counts nodes, with all that is folded in them already.
func counted(nodes []*Node) *Folded {
	all := &Folded{}
	for i, n := range nodes {
		kind := ""
		if n.Object != nil {
			all.Count++
			kind = n.Object.Kind
		}
		if n.Folded != nil {
			all.Count += n.Folded.Count
			kind = sameKind(n.Object, n.Folded.Kind)
		}
		if all.Kind != kind && i > 0 {
			kind = ""
		}
		all.Kind = kind
	}
	return all
}

// sameKind returns the kind of an object and of what is folded below it, if both have one.
func sameKind(o *Object, below string) string {
	if o == nil || o.Kind == below {
		return below
	}
	return ""
}

// grouped puts siblings of one kind that are in the same state into one node, at the place
// of the first.
func grouped(nodes []*Node) []*Node {
	members := map[string][]*Node{}
	for _, n := range nodes {
		members[stateOf(n)] = append(members[stateOf(n)], n)
	}
	var all []*Node
	for _, n := range nodes {
		switch same := members[stateOf(n)]; {
		case stateOf(n) == "" || len(same) == 1:
			all = append(all, n)
		case same[0] == n:
			all = append(all, together(same))
		}
	}
	return all
}

// stateOf returns what siblings have in common that become one node. It is empty for a
// node that stays alone: a target, one that is well and yet shown, and one with children,
// conditions or measurements.
func stateOf(n *Node) string {
	if n.Object == nil || n.Target || n.Folded != nil || n.Measured != nil || n.Sign == Well || len(n.Children) > 0 || len(n.Conditions) > 0 {
		return ""
	}
	if n.Object.Elsewhere {
		return "elsewhere"
	}
	return fmt.Sprintf("%s %s %s", n.Object.GroupKind(), n.Sign, n.Text)
}

func together(nodes []*Node) *Node {
	first := nodes[0]
	n := &Node{Sign: first.Sign, Text: first.Text, Message: first.Message, Folded: &Folded{Count: len(nodes), Kind: first.Object.Kind}}
	for i, node := range nodes {
		if i < mostNames {
			n.Folded.Names = append(n.Folded.Names, node.Object.Name)
		}
		if node.Object.Kind != first.Object.Kind {
			n.Folded.Kind = ""
		}
	}
	return n
}
