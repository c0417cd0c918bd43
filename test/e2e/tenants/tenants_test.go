// SPDX-License-Identifier: Apache-2.0

// Package tenants tests two teams in one cluster. Each has the shipped rights in a
// namespace of its own, and tries to reach into the other's namespace.
package tenants

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/fluxcd/pkg/apis/acl"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

func TestMain(m *testing.M) { os.Exit(fixture.ExitCode(m.Run())) }

// tenant is a team with an application. It acts with its own rights.
type tenant struct {
	*env.Env
	own client.Client
}

func TestTenantsCannotReachEachOther(t *testing.T) {
	plane := env.StartFor(t, controlplane.Options{Flux: true, ImageScanner: true}, "--no-cross-namespace-refs")
	letTenantsUseFlux(t, plane)
	anna, bert := settle(t, plane, "anna"), settle(t, plane, "bert")
	for name, pair := range map[string][2]tenant{"anna reaches for bert's": {anna, bert}, "bert reaches for anna's": {bert, anna}} {
		t.Run(name, func(t *testing.T) { reach(t, pair[0].on(t), pair[1].on(t)) })
	}
}

// settle gives a tenant a namespace, rights in it, and an application that runs.
func settle(t *testing.T, plane *env.Plane, name string) tenant {
	t.Helper()
	config, err := plane.RESTConfigFor(name)
	if err != nil {
		t.Fatal(err)
	}
	own, err := client.New(config, client.Options{Scheme: plane.Client().Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	s := tenant{env.New(t, plane), own}
	objects := s.Flux(plane.Registry.Host())
	s.Env.Create(objects[0])
	for _, role := range []string{
		"rollout-editor-role", "rolloutgate-editor-role", "healthcheck-editor-role", "rolloutschedule-editor-role", "environment-editor-role",
	} {
		grant(t, plane, name, "rollout-controller-"+role, s.Namespace)
	}
	grant(t, plane, name, scenario.FluxEdit().Name, s.Namespace)
	grant(t, plane, name, "flux-tenant-secrets", s.Namespace)
	s.makes(t, objects[1:]...)
	s.makes(t, s.HealthCheck(), s.Rollout(s.Baked(time.Second, time.Minute)), login(s), vault(s, plane), environmentOf(s, s.Name))
	s.Publish(s.ConfigRelease("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	return s
}

// on returns the tenant for use in another test.
func (s tenant) on(t *testing.T) tenant {
	t.Helper()
	there := *s.Env
	there.T = t
	return tenant{&there, s.own}
}

// reach makes a tenant try everything, and checks that the other one's namespace stays as
// it is and continues to work.
func reach(t *testing.T, from, into tenant) {
	t.Helper()
	before := atRest(t, into)
	spy := from.Another("spy").Rollout()
	spy.Spec.ReleasesImagePolicy.Name = from.Name
	spy.Spec.HealthCheckSelector = &v1alpha1.HealthCheckSelector{Selector: &metav1.LabelSelector{}, NamespaceSelector: &metav1.LabelSelector{}}
	thief := from.Another("thief").Rollout()
	policy := from.Another("thief").ImagePolicy(">=1.0.0")
	policy.Spec.ImageRepositoryRef = meta.NamespacedObjectReference{Namespace: into.Namespace, Name: "vault"}
	peek := from.Another("peek").HealthCheck()
	peek.Annotations[v1alpha1.KustomizationAnnotation] = into.Namespace + "/" + into.Name
	bait := from.Another("bait").OCIRepository(from.Plane.Registry.Host())
	bait.Annotations[v1alpha1.RolloutAnnotation] = into.Namespace + "/" + into.Name
	fishing := vault(from, from.Plane)
	fishing.Name, fishing.Spec.SecretRef.Name = "fishing", into.Namespace+"-secret"
	follower := environmentOf(from, "spy")
	follower.Spec.Upstreams = []environmentsv1.Upstream{{Environment: "production", Namespace: into.Namespace, Rollout: into.Name}}
	from.makes(t, spy, policy, thief, peek, bait, fishing, closed(from), frozen(from), follower)

	denied(t, from, spy, "spec.healthCheckSelector.namespaceSelector")
	denied(t, from, thief, "ImageRepository "+into.Namespace+"/vault")
	env.Eventually(t, "a HealthCheck that is refused", func() (bool, string) {
		from.Read(peek)
		message := peek.Status.Message
		return message != nil && strings.Contains(*message, "references across namespaces are not allowed"), cmp.Diff("", message)
	})
	env.Eventually(t, "an Environment that is refused", func() (bool, string) {
		from.Read(follower)
		ready := apimeta.FindStatusCondition(follower.Status.Conditions, v1alpha1.ReadyCondition)
		return ready != nil && ready.Reason == v1alpha1.AccessDeniedReason && len(follower.Status.EnvironmentInfos) == 1, fmt.Sprint(ready)
	})
	from.refusedTo(t, into)

	if got := controllersWritesIn(t, into); len(got) > before {
		t.Errorf("the controller has written in the other's namespace: %v", got[before:])
	}
	for _, request := range audited(t, into) {
		if request.Resource == "/secrets" {
			t.Errorf("the controller asked to %s", request)
		}
	}
	next := "1." + strings.Repeat("1", 1+len(into.Live().Status.History)) + ".0"
	into.Publish(into.ConfigRelease(next))
	into.AwaitState(next, v1alpha1.BakeSucceeded)
	if got := from.Live().Current().Version.Tag; !strings.HasPrefix(got, "1.") || !showsGate(from.Live()) {
		t.Errorf("the tenant's own gate is not shown at its own Rollout, which runs %s", got)
	}
	if err := from.own.Delete(t.Context(), follower); err != nil {
		t.Fatal(err)
	}
	from.fixes(t, spy, policy)
}

// fixes removes the references that were refused. The Rollouts recover by themselves.
func (s tenant) fixes(t *testing.T, spy *v1alpha1.Rollout, policy *imagev1.ImagePolicy) {
	t.Helper()
	s.changes(t, spy, func() { spy.Spec.HealthCheckSelector = nil })
	s.changes(t, policy, func() { policy.Spec.ImageRepositoryRef = meta.NamespacedObjectReference{Name: s.Name} })
	for _, name := range []string{"spy", "thief"} {
		other := tenant{s.Another(name), s.own}
		other.Await("no refusal any more", func(r *v1alpha1.Rollout) bool {
			return env.Condition(r, v1alpha1.StalledCondition) == "" && r.Current().State() == v1alpha1.BakeSucceeded
		})
	}
	for _, object := range []client.Object{closed(s), frozen(s)} {
		if err := s.own.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	s.Await("no gate any more", func(r *v1alpha1.Rollout) bool { return !showsGate(r) })
}

// refusedTo checks what RBAC alone prevents a tenant from doing.
func (s tenant) refusedTo(t *testing.T, other tenant) {
	t.Helper()
	everywhere := &v1alpha1.ClusterRolloutSchedule{ObjectMeta: metav1.ObjectMeta{Name: "everywhere"}}
	everywhere.Spec.RolloutSelector, everywhere.Spec.Rules = &metav1.LabelSelector{}, []v1alpha1.ScheduleRule{{}}
	theirs, check := other.Rollout(), s.HealthCheck()
	theirs.Annotations = map[string]string{v1alpha1.ForceDeployAnnotation: "1.0.0"}
	healthy := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"status":"Healthy"}}`))
	proven := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"releases":[{"tag":"1.1.0","state":"Succeeded"}]}}`))
	for what, err := range map[string]error{
		"freeze the cluster":            s.own.Create(t.Context(), everywhere),
		"read the other's Rollout":      s.own.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs.DeepCopy()),
		"annotate the other's Rollout":  s.own.Patch(t.Context(), theirs, client.Merge),
		"gate the other's Rollout":      s.own.Create(t.Context(), closed(other)),
		"report health":                 s.own.Status().Patch(t.Context(), check, healthy),
		"write a Rollout's status":      s.own.Status().Patch(t.Context(), s.Rollout(), healthy),
		"speak for the other's Rollout": s.own.Create(t.Context(), environmentOf(other, "impostor")),
		"say what is proven":            s.own.Status().Patch(t.Context(), environmentOf(s, s.Name), proven),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("a tenant could %s: %v", what, err)
		}
	}
}

// denied waits until a Rollout reports the reference that is refused.
func denied(t *testing.T, s tenant, rollout *v1alpha1.Rollout, words string) {
	t.Helper()
	other := tenant{s.Another(rollout.Name), s.own}
	other.Await("a refusal", func(r *v1alpha1.Rollout) bool {
		stalled := env.Condition(r, v1alpha1.StalledCondition)
		return strings.HasPrefix(stalled, "Stalled=True AccessDenied: ") && strings.Contains(stalled, words) &&
			(r.Current() == nil || r.Current().State() == v1alpha1.BakeDeploying)
	})
}

// vault returns an ImageRepository with a login that all namespaces may refer to.
func vault(s tenant, plane *env.Plane) *imagev1.ImageRepository {
	repository := s.Env.ImageRepository(plane.Registry.Host())
	repository.Name = "vault"
	repository.Spec.SecretRef = &meta.LocalObjectReference{Name: "vault"}
	repository.Spec.AccessFrom = &acl.AccessFrom{NamespaceSelectors: []acl.NamespaceSelector{{}}}
	return repository
}

// login returns a Secret for the registry of the control plane, which accepts every
// login.
func login(s tenant) *corev1.Secret {
	config := fmt.Sprintf(`{"auths":{%q:{"username":"u","password":"p"}}}`, s.Plane.Registry.Host())
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "vault"}, Type: corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{corev1.DockerConfigJsonKey: config},
	}
}

// closed returns a gate for a Rollout whose name exists in the namespaces of both
// tenants.
func closed(s tenant) *v1alpha1.RolloutGate {
	gate := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "blocker"}}
	gate.Spec.RolloutRef, gate.Spec.Passing = &v1alpha1.LocalObjectReference{Name: s.Name}, new(false)
	return gate
}

// environmentOf returns an Environment that all namespaces may name as an upstream.
func environmentOf(s tenant, rollout string) *environmentsv1.Environment {
	e := &environmentsv1.Environment{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: rollout}}
	e.Spec.RolloutRef.Name, e.Spec.Name, e.Spec.Environment = rollout, "shop", "production"
	e.Spec.Backend.Type = environmentsv1.BackendCluster
	e.Spec.AccessFrom = &v1alpha1.AccessFrom{NamespaceSelectors: []v1alpha1.NamespaceSelector{{}}}
	return e
}

func frozen(s tenant) *v1alpha1.RolloutSchedule {
	schedule := &v1alpha1.RolloutSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "blocker"}}
	schedule.Spec.RolloutSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"frozen": "yes"}}
	schedule.Spec.Rules, schedule.Spec.Action = []v1alpha1.ScheduleRule{{}}, v1alpha1.ScheduleDeny
	return schedule
}

// showsGate reports whether the status of a Rollout has the gate that its tenant made.
func showsGate(r *v1alpha1.Rollout) bool {
	return slices.ContainsFunc(r.Status.Gates, func(g v1alpha1.RolloutGateStatusSummary) bool { return g.Name == "blocker" })
}

// makes creates objects with the tenant's rights.
func (s tenant) makes(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := s.own.Create(t.Context(), o); err != nil {
			t.Fatalf("the tenant cannot create %T %s: %v", o, o.GetName(), err)
		}
	}
}

func (s tenant) changes(t *testing.T, o client.Object, change func()) {
	t.Helper()
	s.Read(o)
	before := o.DeepCopyObject().(client.Object)
	change()
	if err := s.own.Patch(t.Context(), o, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// letTenantsUseFlux creates the roles of Flux and Kubernetes for tenants, which are
// aggregated into edit.
func letTenantsUseFlux(t *testing.T, plane *env.Plane) {
	t.Helper()
	secrets := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "flux-tenant-secrets"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
		}},
	}
	for _, role := range []*rbacv1.ClusterRole{scenario.FluxEdit(), secrets} {
		if err := plane.Client().Create(t.Context(), role); err != nil {
			t.Fatal(err)
		}
	}
}

func grant(t *testing.T, plane *env.Plane, user, role, namespace string) {
	t.Helper()
	if err := scenario.Grant(t.Context(), plane.ControlPlane, user, role, namespace); err != nil {
		t.Fatal(err)
	}
}

// audited returns the controller's requests in a tenant's namespace.
func audited(t *testing.T, s tenant) []controlplane.Audited {
	t.Helper()
	all, err := s.Plane.Audited()
	if err != nil {
		t.Fatal(err)
	}
	var there []controlplane.Audited
	for _, request := range all {
		if request.User == scenario.User(scenario.Account) && request.Namespace == s.Namespace {
			there = append(there, request)
		}
	}
	return there
}

// atRest waits until the controller has finished its work for the tenant's own objects,
// and returns the number of its writes.
func atRest(t *testing.T, s tenant) int {
	t.Helper()
	writes, since := -1, time.Now()
	env.Eventually(t, "no write for a while", func() (bool, string) {
		if now := len(controllersWritesIn(t, s)); now != writes {
			writes, since = now, time.Now()
		}
		return time.Since(since) > 2*time.Second, fmt.Sprintf("%d writes", writes)
	})
	return writes
}

// controllersWritesIn returns the writes of the controller, without events.
func controllersWritesIn(t *testing.T, s tenant) []controlplane.Audited {
	t.Helper()
	var writes []controlplane.Audited
	for _, request := range audited(t, s) {
		if request.IsWrite() && request.Resource != "/events" {
			writes = append(writes, request)
		}
	}
	return writes
}
