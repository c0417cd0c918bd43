// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/tree"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// shop returns the objects of an environment with one Kustomization, which has applied
// some.
func shop(applied ...client.Object) []client.Object {
	return slices.Concat(offer("1.0.0"), applied, []client.Object{pulled(), appliedKustomization("shop", applied...)})
}

// find returns the text and the sign of the nodes with a title, below the targets.
func find(t tree.Tree, title string) (all []string) {
	for _, group := range t.Root.Children {
		group.Each(func(n *tree.Node) {
			if n.Name == title || n.Object != nil && n.Object.String() == title {
				all = append(all, string(n.Sign)+": "+n.Text)
			}
		})
	}
	return all
}

func TestReadThatFailsIsANode(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "", nil)
	gone := deployment("gone")
	widget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": fixture.Namespace, "name": "one"}}}
	for name, tt := range map[string]struct {
		applied []client.Object
		change  func(*testing.T, []client.Object) []client.Object
		failed  client.ObjectList
		title   string
		want    []string
	}{
		"a kind that may not be read": {
			applied: []client.Object{deployment("web"), configMap("settings")}, failed: &appsv1.DeploymentList{}, title: "Deployment/web",
			want: []string{"Unknown: you may not read it: " + forbidden.Error()},
		},
		"many of a kind that may not be read": {
			applied: workloads(5), failed: &appsv1.DeploymentList{}, title: "Deployment/web-004",
			want: []string{"Unknown: you may not read it: " + forbidden.Error()},
		},
		"the others are read": {
			applied: []client.Object{deployment("web"), configMap("settings")}, failed: &appsv1.DeploymentList{}, title: "ConfigMap/settings",
			want: []string{"Well: "},
		},
		"an object that does not exist": {
			applied: []client.Object{gone},
			change: func(_ *testing.T, all []client.Object) []client.Object {
				return slices.DeleteFunc(all, func(o client.Object) bool { return o == gone })
			},
			title: "Deployment/gone",
			want:  []string{"Waits: does not exist, although Flux has applied it: Flux creates it again at its next reconciliation"},
		},
		"one of many lost its labels": {
			applied: workloads(5),
			change: func(_ *testing.T, all []client.Object) []client.Object {
				at := slices.IndexFunc(all, func(o client.Object) bool { return o.GetName() == "web-003" })
				all[at].SetLabels(nil)
				return all
			},
			title: "Deployment/web-003", want: []string{"Well: "},
		},
		"a kind that Go does not know": {applied: []client.Object{widget}, title: "Widget/one", want: []string{"Well: "}},
		"pods that may not be read": {
			applied: []client.Object{broken("web")}, failed: &corev1.PodList{}, title: "pods",
			want: []string{"Unknown: its pods: you may not read it: " + forbidden.Error()},
		},
		"an inventory entry that cannot be parsed": {
			applied: []client.Object{deployment("web")},
			change: func(_ *testing.T, all []client.Object) []client.Object {
				k := all[len(all)-1].(*kustomizev1.Kustomization)
				k.Status.Inventory.Entries = append(k.Status.Inventory.Entries, kustomizev1.ResourceRef{ID: "what", Version: "v1"}, kustomizev1.ResourceRef{})
				return all
			},
			title: "inventory", want: []string{`Unknown: the inventory entry "what" is malformed, and 1 more`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := shop(tt.applied...)
			if tt.change != nil {
				objects = tt.change(t, objects)
			}
			cluster := clusterOf(t, objects...)
			if tt.failed != nil {
				if err := cluster.Fail(tt.failed, forbidden); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tt.want, find(build(t, cluster, running(), tree.Limits{}), tt.title)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// counting counts the requests, and how many of them are under way at the same time.
type counting struct {
	client.Reader
	requests, most atomic.Int32
	mu             sync.Mutex
	now            int32
}

func (c *counting) begin() func() {
	c.requests.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now++
	c.most.Store(max(c.most.Load(), c.now))
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now--
	}
}

func (c *counting) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	defer c.begin()()
	return c.Reader.Get(ctx, key, o, options...)
}

func (c *counting) List(ctx context.Context, l client.ObjectList, options ...client.ListOption) error {
	defer c.begin()()
	return c.Reader.List(ctx, l, options...)
}

func TestManyObjectsOfAKindTakeOneRequest(t *testing.T) {
	cluster := clusterOf(t, shop(workloads(300)...)...)
	s := gather.Gatherer{Client: cluster, Live: cluster}.Gather(t.Context(), running(), fixture.Noon)
	reader := &counting{Reader: cluster}
	tree.Builder{Reader: reader, Limits: tree.Limits{Requests: 2}}.Build(t.Context(), s, promotion.Decide(s.Input))
	if got := reader.requests.Load(); got != 2 { // Deployments and DeploymentCoordinations
		t.Errorf("%d requests, want 2", got)
	}
	if got := reader.most.Load(); got > 2 {
		t.Errorf("%d requests at the same time, want at most 2", got)
	}
}

func TestWhatIsNotReadIsSaid(t *testing.T) {
	built := build(t, clusterOf(t, shop(workloads(7)...)...), running(), tree.Limits{Objects: 5})
	want := []string{"Unknown: 2 objects were not read: at most 5 are read for one tree"}
	if diff := cmp.Diff(want, find(built, "not read")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := len(find(built, "Deployment/web-004")) + len(find(built, "Deployment/web-005")); got != 1 {
		t.Errorf("%d of the fifth and sixth are in the tree, want only the fifth", got)
	}
}

func TestFluxObjectsThatApplyFluxObjectsAreFollowed(t *testing.T) {
	web, chart := deployment("web"), deployment("chart")
	inner := having(fixture.MakeKustomization("inner").From("GitRepository", "shop").Applied("main@sha1:1").Ready().Obj(), web)
	release := fixture.MakeHelmRelease("chart").FromChart("chart").Deployed("1.0.0").Ready().Obj()
	release.Status.Inventory = &helmv2.ResourceInventory{Entries: []helmv2.ResourceRef{{ID: fixture.Namespace + "_chart_apps_Deployment", Version: "v1"}}}
	older := fixture.MakeHelmRelease("older").FromChart("older").Deployed("1.0.0").Ready().Obj()
	old := broken("old")
	label(old, helmv2.GroupVersion.Group, older)
	circle := having(fixture.MakeKustomization("circle").From("GitRepository", "shop").Applied("main@sha1:1").Ready().Obj())
	having(circle, circle)
	objects := append(shop(inner, release, older, circle), web, chart, old)
	golden(t, "nested", draw(t, build(t, clusterOf(t, objects...), running(), tree.Limits{}), tree.Folding{All: true}))
}
