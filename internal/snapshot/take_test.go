// SPDX-License-Identifier: Apache-2.0

package snapshot_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/snapshot"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func clusterScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := scheme(t)
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, imagev1.AddToScheme, kustomizev1.AddToScheme, sourcev1.AddToScheme, helmv2.AddToScheme,
	} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// cluster is a reader that counts requests, and fails those of some kinds.
type cluster struct {
	client.Reader
	mu       sync.Mutex
	requests []string
	failing  map[string]error
}

func (c *cluster) asked(verb string, o runtime.Object) error {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = reflect.TypeOf(o).Elem().Name()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, verb+" "+kind)
	return c.failing[kind]
}

func (c *cluster) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := c.asked("list", list); err != nil {
		return err
	}
	return c.Reader.List(ctx, list, options...)
}

func (c *cluster) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	if err := c.asked("get", o); err != nil {
		return err
	}
	return c.Reader.Get(ctx, key, o, options...)
}

// shops has two namespaces. In shop, 1.1.0 waits for a gate. Its images are those of the
// namespace images, and its HealthChecks are also in smoke.
func shops(t *testing.T) *cluster {
	t.Helper()
	rollout := fixture.MakeRollout("shop").Ledger("1.0.0", "1.1.0").History(fixture.MakeEntry("1.0.0").Succeeded()).Obj()
	rollout.Spec.HealthCheckSelector = &v1alpha1.HealthCheckSelector{
		MatchLabels: map[string]string{"app": "shop"}, NamespaceSelector: &metav1.LabelSelector{},
	}
	check := fixture.MakeHealthCheck("web").InNamespace("smoke").Healthy().LetsIn(nil).Obj()
	check.Labels = map[string]string{"app": "shop"}
	s, err := snapshot.New(clusterScheme(t),
		rollout, check, fixture.MakeScan("shop").InNamespace("images").AccessFrom(nil).Found("1.0.0", "1.1.0").Obj(),
		fixture.MakePolicy("shop").Of("images", "shop").Latest("1.1.0").Obj(),
		fixture.MakeRepository("shop").DrivenBy("shop").Tag("1.0.0").Pulled(fixture.Revision("1.0.0")).Ready().Obj(),
		fixture.MakeKustomization("shop").DrivenBy("shop", "VERSION").Applied(fixture.Revision("1.0.0")).Ready().Obj(),
		fixture.MakeGate("qa", "shop").Closed().Obj(), fixture.MakeRollout("other").Obj(),
		namespace(fixture.Namespace), namespace("smoke"), namespace("images"),
	)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{Reader: s, failing: map[string]error{}}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}}}
}

func take(t *testing.T, from client.Reader, of string) (*snapshot.Snapshot, error) {
	t.Helper()
	s, err := snapshot.Take(t.Context(), from, clusterScheme(t), of)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(gather.Index(t.Context(), s), targets.IndexHelmReleases(t.Context(), s)); err != nil {
		t.Fatal(err)
	}
	return s, nil
}

func decide(t *testing.T, from client.Reader) promotion.Decision {
	t.Helper()
	rollout := &v1alpha1.Rollout{}
	if err := from.Get(t.Context(), client.ObjectKey{Namespace: fixture.Namespace, Name: "shop"}, rollout); err != nil {
		t.Fatal(err)
	}
	read := gather.Gatherer{Client: from, Live: from, HelmReleases: true}.Gather(t.Context(), rollout, fixture.Noon)
	return promotion.Decide(read.Input)
}

func TestTakenSnapshotIsDecidedLikeTheCluster(t *testing.T) {
	server := shops(t)
	whole := server.Reader.(*snapshot.Snapshot)
	if err := errors.Join(gather.Index(t.Context(), whole), targets.IndexHelmReleases(t.Context(), whole)); err != nil {
		t.Fatal(err)
	}
	want := decide(t, whole)
	if len(want.Candidates) != 1 || !want.Candidates[0].HeldBy(v1alpha1.SomeGatesBlockingReason) {
		t.Fatalf("the gate does not hold 1.1.0: %+v", want)
	}
	for name, of := range map[string]string{"one namespace": fixture.Namespace, "all": ""} {
		t.Run(name, func(t *testing.T) {
			s, err := take(t, server, of)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, decide(t, s)); diff != "" {
				t.Errorf("decision (-cluster +snapshot):\n%s", diff)
			}
		})
	}
}

func TestTakeAsksOnceForEachKindAndThenForWhatIsElsewhere(t *testing.T) {
	server := shops(t)
	if _, err := take(t, server, fixture.Namespace); err != nil {
		t.Fatal(err)
	}
	slices.Sort(server.requests)
	want := []string{
		"get ImageRepository", "get Namespace", "list ClusterRolloutScheduleList", "list HealthCheckList", "list HealthCheckList",
		"list HelmReleaseList", "list ImagePolicyList", "list ImageRepositoryList", "list KustomizationList", "list NamespaceList",
		"list OCIRepositoryList", "list RolloutGateList", "list RolloutList", "list RolloutScheduleList",
	}
	if diff := cmp.Diff(want, server.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestKindThatMayNotBeReadFailsInTheSnapshotToo(t *testing.T) {
	server := shops(t)
	server.failing["RolloutGateList"] = apierrors.NewForbidden(schema.GroupResource{Resource: "rolloutgates"}, "", nil)
	server.failing["ImageRepository"] = apierrors.NewForbidden(schema.GroupResource{Resource: "imagerepositories"}, "shop", nil)
	server.failing["HelmReleaseList"] = &meta.NoKindMatchError{}
	s, err := take(t, server, fixture.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	d := decide(t, s)
	if len(d.Candidates) != 1 || !d.Candidates[0].HeldBy(v1alpha1.GateListFailedReason) {
		t.Errorf("gates that may not be read do not hold 1.1.0: %+v", d.Candidates)
	}
	elsewhere := &imagev1.ImageRepository{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "images", Name: "shop"}, elsewhere); !apierrors.IsForbidden(err) {
		t.Errorf("the ImageRepository of another namespace: %v", err)
	}
}

func TestTakeWithoutTheRolloutsIsAnError(t *testing.T) {
	server := shops(t)
	server.failing["RolloutList"] = errors.New("connection refused")
	if _, err := take(t, server, fixture.Namespace); err == nil || !strings.Contains(err.Error(), "list Rollouts: connection refused") {
		t.Errorf("got %v", err)
	}
}

// paged returns one Rollout at a time.
type paged struct{ client.Reader }

func (p paged) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	rollouts, ok := list.(*v1alpha1.RolloutList)
	if err := p.Reader.List(ctx, list, options...); err != nil || !ok {
		return err
	}
	page, all := (&client.ListOptions{}).ApplyOptions(options).Continue, rollouts.Items
	if page == "" {
		rollouts.Items, rollouts.Continue = all[:1], "next"
		return nil
	}
	rollouts.Items = all[1:]
	return nil
}

func TestAllPagesAreTaken(t *testing.T) {
	s, err := take(t, paged{shops(t)}, "")
	if err != nil {
		t.Fatal(err)
	}
	rollouts := &v1alpha1.RolloutList{}
	if err := s.List(t.Context(), rollouts); err != nil || len(rollouts.Items) != 2 {
		t.Errorf("got %d Rollouts, want 2; error %v", len(rollouts.Items), err)
	}
}
