// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
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
		"an object that does not exist because its Kustomization is being deleted": {
			applied: []client.Object{gone}, title: "Deployment/gone",
			change: func(_ *testing.T, all []client.Object) []client.Object {
				k := all[len(all)-1].(*kustomizev1.Kustomization)
				k.DeletionTimestamp, k.Finalizers = &metav1.Time{Time: time.Now()}, []string{"example.com/hold"}
				return slices.DeleteFunc(all, func(o client.Object) bool { return o == gone })
			},
			want: []string{"Waits: does not exist: the Kustomization that has applied it is being deleted"},
		},
		"a Kustomization that is being deleted": {
			applied: []client.Object{gone}, title: "Kustomization/shop",
			change: func(_ *testing.T, all []client.Object) []client.Object {
				k := all[len(all)-1].(*kustomizev1.Kustomization)
				k.DeletionTimestamp, k.Finalizers = &metav1.Time{Time: time.Now()}, []string{"example.com/hold"}
				return all
			},
			want: []string{"Waits: is being deleted"},
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
	// full, if it is set, makes the first requests wait until as many as until are under
	// way.
	full  chan struct{}
	until int32
}

func (c *counting) begin() func() {
	c.requests.Add(1)
	c.mu.Lock()
	c.now++
	c.most.Store(max(c.most.Load(), c.now))
	if c.full != nil && c.now == c.until && c.requests.Load() == c.until {
		close(c.full)
	}
	c.mu.Unlock()
	if c.full != nil {
		<-c.full
	}
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

func TestManyObjectsOfAKindTakeFewRequests(t *testing.T) {
	for name, tt := range map[string]struct {
		applied []client.Object
		failed  client.ObjectList
		want    int32
	}{
		"one list, and the coordinations":             {workloads(300), nil, 2},
		"a list and a get, if none may be read":       {workloads(300), &appsv1.DeploymentList{}, 2},
		"a get for each of three":                     {[]client.Object{configMap("a"), configMap("b"), configMap("c")}, nil, 3},
		"none for Secrets":                            {[]client.Object{secret("a")}, nil, 0},
		"one for the pods of a Deployment that fails": {[]client.Object{broken("a")}, nil, 3},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := clusterOf(t, shop(tt.applied...)...)
			if tt.failed != nil {
				if err := cluster.Fail(tt.failed, apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", nil)); err != nil {
					t.Fatal(err)
				}
			}
			s := gather.Gatherer{Client: cluster, Live: cluster}.Gather(t.Context(), running(), fixture.Noon)
			reader := &counting{Reader: cluster}
			tree.Builder{Reader: reader}.Build(t.Context(), s, promotion.Decide(s.Input))
			if got := reader.requests.Load(); got != tt.want {
				t.Errorf("%d requests, want %d", got, tt.want)
			}
		})
	}
}

func TestFewRequestsAreUnderWayAtTheSameTime(t *testing.T) {
	var applied []client.Object
	for i := range 20 {
		web := deployment("web")
		web.Namespace = fmt.Sprintf("shop-%02d", i)
		applied = append(applied, web)
	}
	cluster := clusterOf(t, shop(applied...)...)
	s := gather.Gatherer{Client: cluster, Live: cluster}.Gather(t.Context(), running(), fixture.Noon)
	reader := &counting{Reader: cluster, full: make(chan struct{}), until: 3}
	built := tree.Builder{Reader: reader, Limits: tree.Limits{Requests: 3}}.Build(t.Context(), s, promotion.Decide(s.Input))
	if got := reader.most.Load(); got != 3 {
		t.Errorf("%d requests at the same time, want 3", got)
	}
	want := []string{"Unknown: turns in 10 more namespaces and rollout groups were not read"}
	if diff := cmp.Diff(want, find(built, "not read")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTreeIsTheSameEachTime(t *testing.T) {
	cluster := clusterOf(t, shop(append(workloads(20), broken("a"), broken("b"), configMap("c"), secret("d"))...)...)
	var first []byte
	for range 10 {
		text, err := json.Marshal(build(t, cluster, running(), tree.Limits{}))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = text
		}
		if diff := cmp.Diff(string(first), string(text)); diff != "" {
			t.Fatalf("(-first +later):\n%s", diff)
		}
	}
}

// endless is a cluster whose lists always have a next page.
type endless struct{ client.Reader }

func (e endless) List(ctx context.Context, l client.ObjectList, options ...client.ListOption) error {
	err := e.Reader.List(ctx, l, options...)
	l.SetContinue("more")
	return err
}

func TestListsAreReadUpToALimit(t *testing.T) {
	web := broken("web")
	set, pods := zone("store", "new")
	cluster := clusterOf(t, append(shop(append(workloads(4), web, set)...), append(pods, podOf(web, "web-7d4b-x", crashing),
		event("Scaled", "apps/v1", "Deployment", "web", func(*corev1.Event) {}))...)...)
	s := gather.Gatherer{Client: cluster, Live: cluster}.Gather(t.Context(), running(), fixture.Noon)
	built := tree.Builder{Reader: endless{cluster}, Limits: tree.Limits{Objects: 7}}.Build(t.Context(), s, promotion.Decide(s.Input))
	for title, want := range map[string][]string{
		"pods":                          {"Unknown: only the first 1 of its pods were read"},
		"coordinations":                 {"Unknown: only the first 0 DeploymentCoordinations of namespace shop-prod were read"},
		"rollout group shop-prod/store": {"Unknown: it could not be read: StatefulSet store has more than 500 pods, and no more are read"},
	} {
		if diff := cmp.Diff(want, find(built, title)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", title, diff)
		}
	}
	events := tree.Events(t.Context(), endless{cluster}, built)
	if diff := cmp.Diff([]string{"events of namespace shop-prod: only the first 5000 were read"}, events.Incomplete); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestPodsOfManyWorkloadsAreNotRead(t *testing.T) {
	var applied []client.Object
	for i := range 26 {
		applied = append(applied, broken(fmt.Sprintf("web-%02d", i)))
	}
	built := build(t, clusterOf(t, shop(applied...)...), running(), tree.Limits{})
	want := []string{`Failed: ReplicaSet "web-25-7d4b" has timed out progressing.; its pods were not read: at most 25 workloads are looked into`}
	if diff := cmp.Diff(want, find(built, "Deployment/web-25")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFluxObjectsAreFollowedOnlySoDeep(t *testing.T) {
	var chain []client.Object
	var last client.Object = deployment("web")
	for i := range 6 {
		k := having(fixture.MakeKustomization(fmt.Sprintf("level-%d", i)).From("GitRepository", "shop").Applied("main@sha1:1").Ready().Obj(), last)
		chain, last = append(chain, last), k
	}
	built := build(t, clusterOf(t, append(shop(last), chain...)...), running(), tree.Limits{})
	want := []string{"Unknown: 1 object not read: at most 5 levels of Flux objects are followed"}
	if diff := cmp.Diff(want, find(built, "not read")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsNotReadIsSaid(t *testing.T) {
	built := build(t, clusterOf(t, shop(workloads(7)...)...), running(), tree.Limits{Objects: 5})
	want := []string{"Unknown: 2 objects not read: at most 5 are read for one tree"}
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

func TestHelmReleaseWithAValueIsATarget(t *testing.T) {
	release := fixture.MakeHelmRelease("values").FromChart("values").DrivenBy("shop", "image.tag").Values(`{"image": {"tag": "0.9.0"}}`).Obj()
	want := []string{"Waits: has not applied it"}
	if diff := cmp.Diff(want, find(build(t, clusterOf(t, append(offer("1.0.0"), running(), release)...), running(), tree.Limits{}), "HelmRelease/values")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTargetThatATargetAppliesIsShownOnce(t *testing.T) {
	inner := appliedKustomization("inner", deployment("web"))
	objects := append(shop(inner), deployment("web"))
	if got := find(build(t, clusterOf(t, objects...), running(), tree.Limits{}), "Kustomization/inner"); len(got) != 1 {
		t.Errorf("it is shown as %q, want once", got)
	}
}
