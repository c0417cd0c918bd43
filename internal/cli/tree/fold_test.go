// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
)

func object(kind, name string) *tree.Object { return &tree.Object{Kind: kind, Name: name} }

// leaf returns a node of an object.
func leaf(kind, name string, sign tree.Sign, text string) *tree.Node {
	return &tree.Node{Object: object(kind, name), Sign: sign, Text: text, Message: text}
}

// treeOf returns a tree with one target, and these nodes below it.
func treeOf(children ...*tree.Node) tree.Tree {
	target := leaf("Kustomization", "shop", tree.Failed, "health check failed")
	target.Target, target.Children = true, children
	return tree.Tree{Root: &tree.Node{Object: object("Rollout", "shop"), Children: []*tree.Node{
		{Name: "Targets", Children: []*tree.Node{target}},
	}}}
}

func TestFoldKeepsWhatMatters(t *testing.T) {
	ready := []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}
	withConditions := leaf("Job", "seed", tree.Well, "")
	withConditions.Conditions = ready
	parent := func(sign tree.Sign, children ...*tree.Node) *tree.Node {
		n := leaf("HelmRelease", "chart", sign, "")
		n.Children = children
		return n
	}
	good := func(name string) *tree.Node { return leaf("Deployment", name, tree.Well, "") }
	bad := func(name string) *tree.Node { return leaf("Deployment", name, tree.Failed, "no image") }
	for name, tt := range map[string]struct {
		folding  tree.Folding
		children []*tree.Node
		want     []*tree.Node
		folded   *tree.Folded
	}{
		"all are well": {
			children: []*tree.Node{good("a"), good("b"), leaf("Service", "a", tree.Well, "")},
			folded:   &tree.Folded{Count: 3},
		},
		"all of one kind": {
			children: []*tree.Node{good("a"), good("b")}, folded: &tree.Folded{Count: 2, Kind: "Deployment"},
		},
		"what is below counts, too": {
			children: []*tree.Node{parent(tree.Well, good("a"), good("b"))}, folded: &tree.Folded{Count: 3},
		},
		"one is not well": {
			children: []*tree.Node{good("a"), bad("b"), good("c")},
			want:     []*tree.Node{bad("b"), {Sign: tree.Well, Folded: &tree.Folded{Count: 2, Kind: "Deployment"}}},
		},
		"one is not well below one that is": {
			children: []*tree.Node{good("a"), parent(tree.Well, bad("b"))},
			want:     []*tree.Node{parent(tree.Well, bad("b")), {Sign: tree.Well, Folded: &tree.Folded{Count: 1, Kind: "Deployment"}}},
		},
		"siblings in the same state": {
			children: []*tree.Node{bad("a"), leaf("Job", "a", tree.Failed, "no image"), bad("b"), bad("c"), bad("d"), leaf("Deployment", "e", tree.Waits, "no image")},
			want: []*tree.Node{
				{Sign: tree.Failed, Text: "no image", Message: "no image", Folded: &tree.Folded{Count: 4, Kind: "Deployment", Names: []string{"a", "b", "c"}}},
				leaf("Job", "a", tree.Failed, "no image"), leaf("Deployment", "e", tree.Waits, "no image"),
			},
		},
		"each by itself": {
			folding:  tree.Folding{Single: true},
			children: []*tree.Node{bad("a"), bad("b"), good("c")},
			want:     []*tree.Node{bad("a"), bad("b"), {Sign: tree.Well, Folded: &tree.Folded{Count: 1, Kind: "Deployment"}}},
		},
		"a child that says what its parent says": {
			children: []*tree.Node{leaf("Deployment", "a", tree.Failed, "health check failed"), leaf("Deployment", "b", tree.Waits, "health check failed")},
			want:     []*tree.Node{leaf("Deployment", "b", tree.Waits, "health check failed")},
		},
		"with echo": {
			folding:  tree.Folding{Echo: true},
			children: []*tree.Node{leaf("Deployment", "a", tree.Failed, "health check failed")},
			want:     []*tree.Node{leaf("Deployment", "a", tree.Failed, "health check failed")},
		},
		"conditions that were asked for": {
			folding:  tree.Folding{Conditions: []string{"job"}},
			children: []*tree.Node{good("a"), withConditions},
			want:     []*tree.Node{withConditions, {Sign: tree.Well, Folded: &tree.Folded{Count: 1, Kind: "Deployment"}}},
		},
		"conditions that were not": {
			folding:  tree.Folding{Conditions: []string{"Pod"}},
			children: []*tree.Node{withConditions},
			folded:   &tree.Folded{Count: 1, Kind: "Job"},
		},
		"all": {
			folding:  tree.Folding{All: true},
			children: []*tree.Node{good("a"), bad("b"), bad("c"), leaf("Deployment", "d", tree.Failed, "health check failed")},
			want:     []*tree.Node{good("a"), bad("b"), bad("c"), leaf("Deployment", "d", tree.Failed, "health check failed")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := treeOf(tt.children...)
			before, err := json.Marshal(given)
			if err != nil {
				t.Fatal(err)
			}
			want := treeOf(tt.want...)
			want.Root.Children[0].Children[0].Folded = tt.folded
			if diff := cmp.Diff(want, given.Fold(tt.folding)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			after, err := json.Marshal(given)
			if err != nil || string(after) != string(before) {
				t.Errorf("the tree that was folded has changed (error %v)", err)
			}
		})
	}
}
