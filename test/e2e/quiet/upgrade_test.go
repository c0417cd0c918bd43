// SPDX-License-Identifier: Apache-2.0

package quiet

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

func TestUpgradeDuringABakeWritesNothing(t *testing.T) {
	s := bake(t)
	objects := func() []client.Object {
		return []client.Object{s.Rollout(), s.HealthCheck(), s.OCIRepository(""), s.Kustomization()}
	}
	before, reported := read(s, objects()), s.Events(s.Rollout())

	stopController(t)
	install(t)
	asked := requests(t)
	startNextVersion(t)

	since := requests(t).Since(asked)
	if diff := cmp.Diff(controlplane.Requests{}, promotionWrites(since)); diff != "" {
		t.Errorf("writes of the Rollout and its targets (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, read(s, objects())); diff != "" {
		t.Errorf("the upgrade changed (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(reported, s.Events(s.Rollout())); diff != "" {
		t.Errorf("the upgrade was reported as something else (-before +after):\n%s", diff)
	}
	endsAsItWould(s, before[0].(*v1alpha1.Rollout).Current())
}

// Fields that upstream's CRD does not have, such as status.targets, are lost while that
// CRD is served and its controller writes.
func TestUpgradeFromUpstreamsCRDKeepsTheBake(t *testing.T) {
	s := bake(t)
	before := s.Live()
	stopController(t)

	serveUpstreamsCRD(t, s)
	throughUpstream(s)
	got := s.Live()
	if diff := cmp.Diff(wire(s, before), wire(s, got)); diff != "" {
		t.Fatalf("upstream's client changed the history (-before +after):\n%s", diff)
	}
	if len(got.Status.Targets) > 0 || got.Current().Grounds != "" {
		t.Fatalf("upstream's client keeps targets %v and grounds %q, which it does not know", got.Status.Targets, got.Current().Grounds)
	}
	install(t)
	awaitSuspendServed(s, true)
	startNextVersion(t)

	after := s.Live()
	if diff := cmp.Diff(wire(s, before), wire(s, after)); diff != "" {
		t.Errorf("the upgrade changed the history (-before +after):\n%s", diff)
	}
	if want, got := before.Current().Grounds, after.Current().Grounds; got != want {
		t.Errorf("the grounds of the release were not found again: %q, want %q", got, want)
	}
	if diff := cmp.Diff(before.Status.Targets, after.Status.Targets); diff != "" {
		t.Errorf("the targets were not found again (-before +after):\n%s", diff)
	}
	endsAsItWould(s, before.Current())
}

// bake returns an application of which 1.0.0 bakes for an hour, after all other requests
// have ended.
func bake(t *testing.T) *env.Env {
	t.Helper()
	s := env.New(t, plane)
	s.CreateFlux()
	s.Create(s.HealthCheck(), s.Rollout(s.Baked(time.Hour, time.Minute)))
	s.Publish(s.ConfigRelease("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeInProgress)
	awaitQuiet(t)
	return s
}

// endsAsItWould ends the bake by making it short, and compares the entry with the entry
// before the upgrade.
func endsAsItWould(s *env.Env, before *v1alpha1.DeploymentHistoryEntry) {
	s.T.Helper()
	s.SetBakeTime(time.Second)
	history := s.AwaitState("1.0.0", v1alpha1.BakeSucceeded).Status.History
	if len(history) != 1 {
		s.T.Fatalf("the history has %d entries, want 1", len(history))
	}
	type kept struct {
		ID                    *int64
		Promoted, BakeStarted metav1.Time
	}
	of := func(e *v1alpha1.DeploymentHistoryEntry) kept { return kept{e.ID, e.Timestamp, *e.BakeStartTime} }
	if diff := cmp.Diff(of(before), of(&history[0])); diff != "" {
		s.T.Errorf("the entry is another one (-before +after):\n%s", diff)
	}
}

// read returns objects as they are stored, with their resource versions.
func read(s *env.Env, objects []client.Object) []client.Object {
	s.T.Helper()
	for _, o := range objects {
		s.Read(o)
	}
	return objects
}

// stopController stops the controller as an update of its Deployment would. It gives up
// its Lease.
func stopController(t *testing.T) {
	t.Helper()
	if err := plane.Controller.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// install applies the manifests that users apply, CRDs included.
func install(t *testing.T) {
	t.Helper()
	objects, err := scenario.Manifests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		data, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := plane.Client().Patch(t.Context(), o, client.RawPatch(types.ApplyPatchType, data),
			client.ForceOwnership, client.FieldOwner("kustomize-controller")); err != nil {
			t.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	awaitQuiet(t)
}

// startNextVersion starts the controller as another version of itself. It waits until
// this one leads and makes no more requests.
func startNextVersion(t *testing.T) {
	t.Helper()
	program := filepath.Join(plane.Dir(), "next-version")
	if err := scenario.BuildVersion(t.Context(), os.Stderr, program, "v0.2.0"); err != nil {
		t.Fatal(err)
	}
	holder := leader(t)
	process, err := scenario.StartController(t.Context(), plane.ControlPlane, program, nil, flags()...)
	if err != nil {
		t.Fatal(err)
	}
	plane.Controller = process
	env.Eventually(t, "another leader than "+holder, func() (bool, string) {
		now := leader(t)
		return now != "" && now != holder, now
	})
	awaitQuiet(t)
}

// leader returns the holder of the Lease, or an empty text after the Lease was given up.
func leader(t *testing.T) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: scenario.Namespace, Name: "8108ddc4.kuberik.com"}
	if err := plane.Client().Get(t.Context(), key, lease); err != nil {
		t.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// serveUpstreamsCRD removes the fields that upstream does not know from the CRD of
// Rollouts.
func serveUpstreamsCRD(t *testing.T, s *env.Env) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "rollouts.kuberik.com"}}
	s.Read(crd)
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	narrow(schema, reflect.TypeFor[fixture.UpstreamRollout]())
	if err := plane.Client().Update(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	awaitSuspendServed(s, false)
}

// narrow removes the properties that a type of upstream's does not have. It also removes
// the rules and defaults, because they may refer to these properties.
func narrow(schema *apiextensionsv1.JSONSchemaProps, upstream reflect.Type) {
	for upstream.Kind() == reflect.Pointer || upstream.Kind() == reflect.Slice {
		if upstream = upstream.Elem(); schema.Items != nil {
			schema = schema.Items.Schema
		}
	}
	schema.XValidations, schema.Default = nil, nil
	if upstream.Kind() != reflect.Struct || strings.HasPrefix(upstream.PkgPath(), "k8s.io/") {
		return
	}
	known := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(upstream) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		known[name] = field.Type
	}
	for name, property := range schema.Properties {
		if known[name] == nil {
			delete(schema.Properties, name)
			continue
		}
		narrow(&property, known[name])
		schema.Properties[name] = property
	}
}

// awaitSuspendServed waits until the API server serves a field that upstream's CRD lacks,
// or no longer serves it.
func awaitSuspendServed(s *env.Env, want bool) {
	s.T.Helper()
	env.Eventually(s.T, "the CRD to be served", func() (bool, string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":true}}`))
		err := plane.Client().Patch(s.T.Context(), s.Rollout(), patch, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))
		return (err == nil) == want, ""
	})
}

// throughUpstream reads the Rollout and writes its status as upstream would.
func throughUpstream(s *env.Env) {
	s.T.Helper()
	if err := plane.Client().Status().Update(s.T.Context(), asUpstreamReads(s, s.Live())); err != nil {
		s.T.Fatal(err)
	}
}

// wire returns the history as upstream's client knows it.
func wire(s *env.Env, rollout *v1alpha1.Rollout) []v1alpha1.DeploymentHistoryEntry {
	s.T.Helper()
	return asUpstreamReads(s, rollout).Status.History
}

// asUpstreamReads returns a Rollout without the fields that upstream's client drops.
func asUpstreamReads(s *env.Env, rollout *v1alpha1.Rollout) *v1alpha1.Rollout {
	s.T.Helper()
	object, err := json.Marshal(rollout)
	if err != nil {
		s.T.Fatal(err)
	}
	if object, err = fixture.ThroughUpstream(object, nil); err != nil {
		s.T.Fatal(err)
	}
	read := &v1alpha1.Rollout{}
	if err := json.Unmarshal(object, read); err != nil {
		s.T.Fatal(err)
	}
	return read
}
