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
	"testing/synctest"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func clusterScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := scheme(t)
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, v1alpha1.AddToScheme, environmentsv1.AddToScheme, imagev1.AddToScheme, kustomizev1.AddToScheme, sourcev1.AddToScheme,
		generatorv1.AddToScheme, helmv2.AddToScheme,
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
	in := (&client.ListOptions{}).ApplyOptions(options).Namespace
	if err := c.failing[reflect.TypeOf(list).Elem().Name()+" in "+in]; err != nil {
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
	s, err := (snapshot.Options{}).Take(t.Context(), from, clusterScheme(t), of)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(gather.Index(t.Context(), s), gather.IndexEnvironments(t.Context(), s), targets.IndexHelmReleases(t.Context(), s), targets.IndexGitRepositories(t.Context(), s)); err != nil {
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
	read := gather.Gatherer{Client: from, Live: from, HelmReleases: true, GitRepositories: true, Environments: true, Quarantines: true}.Gather(t.Context(), rollout, fixture.Noon)
	return promotion.Decide(read.Input)
}

func TestTakenSnapshotIsDecidedLikeTheCluster(t *testing.T) {
	server := shops(t)
	whole := server.Reader.(*snapshot.Snapshot)
	if err := errors.Join(gather.Index(t.Context(), whole), gather.IndexEnvironments(t.Context(), whole), targets.IndexHelmReleases(t.Context(), whole), targets.IndexGitRepositories(t.Context(), whole)); err != nil {
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

// own is everything that a decision can depend on, in the namespace of one Rollout.
func own(t *testing.T, more ...client.Object) *cluster {
	t.Helper()
	s, err := snapshot.New(clusterScheme(t), append([]client.Object{
		fixture.MakeRollout("shop").SelectAllChecks().Ledger("1.0.0", "1.1.0").History(fixture.MakeEntry("1.0.0").Succeeded()).Obj(),
		fixture.MakeHealthCheck("web").Healthy().Obj(), fixture.MakeGate("qa", "shop").Closed().Obj(),
		fixture.MakeSchedule("nights").Obj(), fixture.MakeSchedule("freeze").Cluster(nil),
		fixture.MakeScan("shop").Found("1.0.0", "1.1.0").Obj(), fixture.MakePolicy("shop").Latest("1.1.0").Obj(),
		fixture.MakeRepository("shop").DrivenBy("shop").Tag("1.0.0").Obj(),
		fixture.MakeKustomization("shop").DrivenBy("shop", "VERSION").Obj(),
		fixture.MakeHelmRelease("shop").From("OCIRepository", "shop").Obj(), namespace(fixture.Namespace),
	}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{Reader: s, failing: map[string]error{}}
}

// always is what is requested whatever the objects refer to.
var always = []string{
	"list ClusterReleaseQuarantineList", "list ClusterRolloutGateList", "list ClusterRolloutScheduleList", "list EnvironmentList", "list HelmReleaseList",
	"list ImagePolicyList", "list KustomizationList", "list OCIRepositoryList", "list ReleaseQuarantineList", "list RolloutGateList",
	"list RolloutList", "list RolloutScheduleList",
}

func TestTakeRequestsOnlyWhatObjectsReferTo(t *testing.T) {
	selects := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
	policies := slices.Repeat([]string{"get ValidatingAdmissionPolicy", "get ValidatingAdmissionPolicyBinding"}, 3)
	for name, tt := range map[string]struct {
		server *cluster
		laid   []client.Object
		want   []string
	}{
		"a Rollout with all in its namespace: fourteen requests": {
			server: own(t), want: []string{"get ImageRepository", "list HealthCheckList"},
		},
		"a Rollout without HealthChecks": {
			server: own(t, fixture.MakeRollout("shop").Obj()), want: []string{"get ImageRepository"},
		},
		"two ImageRepositories are listed": {
			server: own(t, fixture.MakePolicy("cart").Of("", "cart").Obj()), want: []string{"list HealthCheckList", "list ImageRepositoryList"},
		},
		"a schedule that selects namespaces": {
			server: own(t, fixture.MakeSchedule("freeze").Cluster(selects)),
			want:   []string{"get ImageRepository", "get Namespace", "list HealthCheckList"},
		},
		"a gate that asks for approvals": {
			server: own(t, &v1alpha1.RolloutGate{
				ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "four-eyes"}, Spec: v1alpha1.RolloutGateSpec{Approvals: &v1alpha1.Approvals{}},
			}),
			want: append(slices.Clone(policies), "get ImageRepository", "list HealthCheckList", "list RolloutApprovalList"),
		},
		"a gate of the cluster that asks in some namespaces": {
			server: own(t, &v1alpha1.ClusterRolloutGate{
				ObjectMeta: metav1.ObjectMeta{Name: "prod"}, Spec: v1alpha1.ClusterRolloutGateSpec{NamespaceSelector: selects, Approvals: &v1alpha1.Approvals{}},
			}),
			want: append(slices.Clone(policies), "get ImageRepository", "get Namespace", "list HealthCheckList", "list RolloutApprovalList"),
		},
		"a recall in some namespaces": {
			server: own(t, recallIn(selects)), want: []string{"get ImageRepository", "get Namespace", "list HealthCheckList"},
		},
		"a recall in all namespaces": {
			server: own(t, recallIn(nil)), want: []string{"get ImageRepository", "list HealthCheckList"},
		},
		"an ImageRepository and a source of other namespaces": {
			server: own(t, fixture.MakePolicy("shop").Of("images", "shop").Obj(),
				fixture.MakeKustomization("shop").From("OCIRepository", "shop").FromNamespace("sources").Obj()),
			want: []string{"get ImageRepository", "get Namespace", "get OCIRepository", "list HealthCheckList"},
		},
		"HealthChecks of other namespaces": {
			server: shops(t), want: []string{"get ImageRepository", "list HealthCheckList", "list NamespaceList"},
		},
		"upstreams in the namespace": {
			server: own(t, environmentOf("shop", "prod", "shop")), want: []string{"get ImageRepository", "list HealthCheckList"},
		},
		"upstreams of other namespaces, and theirs": {
			server: own(t, environmentOf("shop", "prod", "staging", "qa"), environmentOf("staging", "staging", "dev"), environmentOf("dev", "dev", "shop")),
			want: []string{
				"get ImageRepository", "get Namespace", "list HealthCheckList",
				"get Namespace", "list EnvironmentList", "get Namespace", "list EnvironmentList", "get Namespace", "list EnvironmentList",
			},
		},
		"what is laid over it counts": {
			server: own(t, fixture.MakeRollout("shop").Obj()),
			laid: []client.Object{
				fixture.MakeRollout("shop").SelectAllChecks().Obj(), fixture.MakeSchedule("freeze").Cluster(selects),
				fixture.MakePolicy("cart").Of("images", "cart").Obj(),
			},
			want: []string{"get ImageRepository", "get ImageRepository", "get Namespace", "list HealthCheckList"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := (snapshot.Options{}).Take(t.Context(), tt.server, clusterScheme(t), fixture.Namespace, tt.laid...); err != nil {
				t.Fatal(err)
			}
			got, want := slices.Sorted(slices.Values(tt.server.requests)), slices.Sorted(slices.Values(append(tt.want, always...)))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// recallIn returns a recall of release 1.1.0 in the namespaces with some labels.
func recallIn(namespaces *metav1.LabelSelector) *v1alpha1.ClusterReleaseQuarantine {
	q := &v1alpha1.ClusterReleaseQuarantine{ObjectMeta: metav1.ObjectMeta{Name: "recall"}}
	q.Spec.Image, q.Spec.Tags, q.Spec.NamespaceSelector = "registry.example.com/shop", []string{"1.1.0"}, namespaces
	return q
}

func TestTakeReadsTheQuarantinesThatCount(t *testing.T) {
	elsewhere := &v1alpha1.ReleaseQuarantine{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "bad"}}
	here := &v1alpha1.ReleaseQuarantine{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "bad"}}
	for everywhere, want := range map[bool]int{false: 1, true: 2} {
		s, err := snapshot.Options{QuarantinesEverywhere: everywhere}.Take(t.Context(), own(t, elsewhere, here), clusterScheme(t), fixture.Namespace)
		if err != nil {
			t.Fatal(err)
		}
		list := &v1alpha1.ReleaseQuarantineList{}
		if err := s.List(t.Context(), list); err != nil || len(list.Items) != want {
			t.Errorf("everywhere %v: %d quarantines, error %v", everywhere, len(list.Items), err)
		}
	}
}

// environmentOf returns an Environment of Rollout shop in a namespace. Its upstreams are in
// others, and have their names.
func environmentOf(namespace, name string, upstreams ...string) *environmentsv1.Environment {
	if namespace == "shop" {
		namespace = fixture.Namespace
	}
	e := &environmentsv1.Environment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	e.Spec.RolloutRef.Name, e.Spec.Name, e.Spec.Environment = "shop", "shop", name
	e.Spec.AccessFrom = &v1alpha1.AccessFrom{NamespaceSelectors: []v1alpha1.NamespaceSelector{{}}}
	e.Status.ObservedGeneration = 1
	for _, upstream := range upstreams {
		u := environmentsv1.Upstream{Environment: upstream, Namespace: upstream}
		if upstream == "shop" {
			u.Namespace, u.Environment = fixture.Namespace, "prod"
		}
		e.Spec.Upstreams = append(e.Spec.Upstreams, u)
	}
	return e
}

// upstreamHold returns what upstreams have against 1.1.0, as a snapshot of a server shows it.
func upstreamHold(t *testing.T, server *cluster) string {
	t.Helper()
	s, err := take(t, server, fixture.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, candidate := range decide(t, s).Candidates {
		for _, hold := range candidate.Holds {
			if strings.HasPrefix(hold.Reason, "Upstream") {
				return hold.Message
			}
		}
	}
	return ""
}

func TestTakeKnowsUpstreamsOfOtherNamespaces(t *testing.T) {
	prod, staging := environmentOf("shop", "prod", "staging"), environmentOf("staging", "staging")
	for name, tt := range map[string]struct {
		fails error
		of    []client.Object
		want  string
	}{
		"is read":        {nil, []client.Object{prod, staging}, "the digest of 1.1.0 is not known here: set spec.digestReflectionPolicy of the ImagePolicy"},
		"does not exist": {nil, []client.Object{prod}, "namespace staging has no Environment staging of application shop for Rollout shop whose spec.accessFrom lets in namespace shop-prod: create it there, or add the namespace"},
		"comes after us": {nil, []client.Object{prod, environmentOf("staging", "staging", "shop")}, "Environment prod comes after itself (prod after staging after prod): remove one of these upstreams"},
		"may not be read": {
			apierrors.NewForbidden(schema.GroupResource{Resource: "environments"}, "", nil), []client.Object{prod, staging},
			"the Environment of staging in namespace staging could not be read: Forbidden",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := own(t, append(tt.of, namespace("staging"))...)
			if tt.fails != nil {
				server.failing["EnvironmentList in staging"] = tt.fails
			}
			if diff := cmp.Diff(tt.want, upstreamHold(t, server)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSnapshotKnowsWhatIsServed(t *testing.T) {
	server := own(t)
	server.failing["EnvironmentList"] = &meta.NoKindMatchError{}
	s, err := take(t, server, fixture.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	if s.Serves(&environmentsv1.EnvironmentList{}) || !s.Serves(&v1alpha1.RolloutGate{}) {
		t.Error("Environments are served, or RolloutGates are not")
	}
	if s, err = s.With(environmentOf("shop", "prod")); err != nil || !s.Serves(&environmentsv1.Environment{}) {
		t.Errorf("an Environment that is laid over it is not served; error %v", err)
	}
}

// slow is a reader that needs a second for each request.
type slow struct{ client.Reader }

func (s slow) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	<-time.After(time.Second)
	return s.Reader.List(ctx, list, options...)
}

func (s slow) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	<-time.After(time.Second)
	return s.Reader.Get(ctx, key, o, options...)
}

func TestTakeRequestsInTwoParallelRounds(t *testing.T) {
	server, known := slow{shops(t)}, clusterScheme(t)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if _, err := (snapshot.Options{}).Take(t.Context(), server, known, fixture.Namespace); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("requests of a second each took %s, want two rounds of one second", took)
		}
	})
}

func TestKindThatIsNotServedHasNoObjects(t *testing.T) {
	for name, err := range map[string]error{
		"unknown to the client":       &meta.NoKindMatchError{},
		"not found by the API server": apierrors.NewNotFound(schema.GroupResource{Resource: "helmreleases"}, ""),
	} {
		t.Run(name, func(t *testing.T) {
			server := own(t)
			server.failing["HelmReleaseList"] = err
			s, err := take(t, server, fixture.Namespace)
			if err != nil {
				t.Fatal(err)
			}
			releases := &helmv2.HelmReleaseList{}
			if err := s.List(t.Context(), releases); err != nil || len(releases.Items) != 0 {
				t.Errorf("got %d HelmReleases and error %v, want none", len(releases.Items), err)
			}
		})
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
