// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Masterminds/semver/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

const (
	// bake is how long releases bake in staging.
	bake = 2 * time.Second
	// long is longer than any test.
	long = time.Hour
)

// application has two environments. Production takes what staging has proven.
type application struct {
	staging, prod *env.Env
	gone          string // the UID of the cluster that staging was in before
}

// newApplication returns an application that shares the plane with those of other tests.
func newApplication(t *testing.T) *application {
	t.Helper()
	use.RLock()
	t.Cleanup(use.RUnlock)
	return deployed(t)
}

// alone returns an application while no other test uses the plane.
func alone(t *testing.T) *application {
	t.Helper()
	use.Lock()
	t.Cleanup(use.Unlock)
	return deployed(t)
}

// deployed returns an application that runs 1.1.0 in staging and 1.0.0 in production, where a
// gate holds 1.1.0.
func deployed(t *testing.T) *application {
	t.Helper()
	a := environments(t, plane, plane)
	a.staging.Create(a.staging.NamespaceObject())
	a.prod.Create(a.prod.NamespaceObject())
	a.deployStaging()
	a.deployProduction()
	a.publish("1.0.0")
	a.prod.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	a.prod.Create(a.gate(false))
	a.prod.AwaitClosed()
	a.publish("1.1.0")
	a.staging.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	a.prod.AwaitCandidate("1.1.0")
	t.Cleanup(func() { a.keepsThePromises() })
	return a
}

// environments returns an application without objects.
func environments(t *testing.T, stagingPlane, prodPlane *env.Plane) *application {
	t.Helper()
	staging := env.New(t, stagingPlane)
	prod := *staging
	prod.Namespace, prod.Plane = prod.Namespace+"-prod", prodPlane
	return &application{staging: staging, prod: &prod}
}

// deployStaging creates what Git has of staging.
func (a *application) deployStaging() {
	a.staging.T.Helper()
	first := a.staging.Environment("staging")
	first.Spec.AccessFrom = &v1alpha1.AccessFrom{NamespaceSelectors: []v1alpha1.NamespaceSelector{{
		MatchLabels: map[string]string{corev1.LabelMetadataName: a.prod.Namespace}}}}
	a.staging.Create(first, a.staging.HealthCheck(), a.staging.Rollout(a.staging.Baked(bake, time.Minute)))
	a.staging.Create(flux(a.staging)...)
}

// deployProduction creates what Git has of production.
func (a *application) deployProduction(options ...func(*v1alpha1.RolloutSpec)) {
	a.prod.T.Helper()
	a.prod.Create(a.prod.Environment("prod", environmentsv1.Upstream{Environment: "staging", Namespace: a.staging.Namespace}))
	obeys := func(spec *v1alpha1.RolloutSpec) {
		spec.EnvironmentRef = &v1alpha1.LocalObjectReference{Name: a.prod.Name}
	}
	a.prod.Create(a.prod.Rollout(append(options, obeys)...))
	a.prod.Create(flux(a.prod)...)
}

// flux returns the Flux objects as the guides have them, with a first tag that does not exist.
func flux(e *env.Env) []client.Object {
	host := e.Plane.Registry.Host()
	return []client.Object{
		e.ImageRepository(host), e.ImagePolicy(">=1.0.0"), e.OCIRepositoryWithFirstTag(host), e.Kustomization(),
	}
}

// gate returns a gate of production that names no version, or those that it allows.
func (a *application) gate(passing bool, allowed ...string) *v1alpha1.RolloutGate {
	gate := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: a.prod.Namespace, Name: "approval"}}
	gate.Spec.RolloutRef, gate.Spec.Passing = &v1alpha1.LocalObjectReference{Name: a.prod.Name}, &passing
	if len(allowed) > 0 {
		gate.Spec.AllowedVersions = &allowed
	}
	return gate
}

// opens makes the gate of production pass.
func (a *application) opens() {
	a.prod.T.Helper()
	gate := a.gate(false)
	a.prod.Change(gate, func() { gate.Spec.Passing = new(true) })
}

// publish pushes a release, which both environments find.
func (a *application) publish(version string) {
	a.staging.T.Helper()
	a.staging.Publish(a.staging.ConfigRelease(version))
	a.prod.Scan()
}

// holds waits until production says that something holds a release.
func (a *application) holds(what string) {
	a.prod.T.Helper()
	a.prod.Await("a hold: "+what, func(r *v1alpha1.Rollout) bool {
		return strings.Contains(env.Condition(r, v1alpha1.GatesPassingCondition), what)
	})
}

// staysAt checks that production goes on to run a version for a while.
func (a *application) staysAt(version string) {
	a.prod.T.Helper()
	a.prod.Stays("at "+version, func(r *v1alpha1.Rollout) bool {
		return r.Current() != nil && r.Current().Version.Tag == version && a.tag() == version
	})
}

// tag is the tag in the OCIRepository of production.
func (a *application) tag() string {
	a.prod.T.Helper()
	repository := a.prod.OCIRepository("")
	a.prod.Read(repository)
	return repository.Spec.Reference.Tag
}

// loses deletes objects of an environment, also if some are missing.
func loses(e *env.Env, objects ...client.Object) {
	e.T.Helper()
	for _, o := range objects {
		if err := client.IgnoreNotFound(e.Plane.Client().Delete(e.T.Context(), o)); err != nil {
			e.T.Fatal(err)
		}
	}
}

// keepsThePromises checks every state that etcd has stored: the OCIRepository of production
// never went back to an older version, unless it was created anew, and it took each version
// after staging had proven it. Times of other clusters cannot be compared: what staging has
// proven there may be later.
func (a *application) keepsThePromises(elsewhere ...*env.Plane) {
	t := a.prod.T
	t.Helper()
	if t.Failed() {
		return
	}
	var runs *semver.Version
	proven := map[string]bool{}
	for _, p := range elsewhere {
		for _, state := range history(t, p) {
			a.proves(state.Object, proven)
		}
	}
	for _, state := range history(t, a.prod.Plane) {
		a.proves(state.Object, proven)
		switch object := state.Object; {
		case object.GetKind() != "OCIRepository" || object.GetNamespace() != a.prod.Namespace:
		case state.Deleted:
			runs = nil
		default:
			runs = a.followed(runs, object, proven)
		}
	}
	if runs == nil {
		t.Error("no state shows a version in production")
	}
}

// history returns every state that etcd has stored.
func history(t *testing.T, p *env.Plane) []controlplane.State {
	t.Helper()
	states, err := p.History(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return states
}

// proves adds what the Rollout of staging has proven.
func (a *application) proves(object *unstructured.Unstructured, proven map[string]bool) {
	if object.GetKind() == v1alpha1.RolloutKind && object.GetNamespace() == a.staging.Namespace {
		for _, tag := range succeeded(object) {
			proven[tag] = true
		}
	}
}

// followed checks a state of production's OCIRepository, and returns the version in it.
func (a *application) followed(before *semver.Version, repository *unstructured.Unstructured, proven map[string]bool) *semver.Version {
	a.prod.T.Helper()
	tag, _, _ := unstructured.NestedString(repository.Object, "spec", "ref", "tag")
	version, err := semver.NewVersion(tag)
	if err != nil {
		return before // the first tag, which does not exist
	}
	if before != nil && version.LessThan(before) {
		a.prod.T.Errorf("production went back from %s to %s", before, version)
	}
	if !proven[tag] {
		a.prod.T.Errorf("production took %s, which staging had not proven", tag)
	}
	return version
}

// succeeded returns the versions that the history of a Rollout proves.
func succeeded(rollout *unstructured.Unstructured) []string {
	var tags []string
	history, _, _ := unstructured.NestedSlice(rollout.Object, "status", "history")
	for _, entry := range history {
		fields, _ := entry.(map[string]any)
		state, _, _ := unstructured.NestedString(fields, "bakeStatus")
		if tag, _, _ := unstructured.NestedString(fields, "version", "tag"); state == string(v1alpha1.BakeSucceeded) {
			tags = append(tags, tag)
		}
	}
	return slices.Compact(tags)
}
