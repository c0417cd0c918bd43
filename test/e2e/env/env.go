// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// Env is one application in a namespace of its own, and the test that uses it.
type Env struct {
	scenario.App
	T     *testing.T
	Plane *Plane
}

// envs makes the namespaces of tests with the same beginning different.
var envs atomic.Int32

// New returns an application without any objects.
func New(t *testing.T, plane *Plane) *Env {
	t.Helper()
	namespace := fmt.Sprintf("%s-%d", namespaceOf(t), envs.Add(1))
	e := &Env{App: scenario.NewApp(namespace, "shop"), T: t, Plane: plane}
	e.Repository = e.Namespace + "/" + e.Name
	e.ProgressDeadline = 10 * time.Minute // as Kubernetes has it
	return e
}

// namespaceOf returns the beginning of a namespace's name, made from the test's name.
func namespaceOf(t *testing.T) string {
	t.Helper()
	name := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(strings.TrimPrefix(t.Name(), "Test")))
	return strings.Trim(name[:min(len(name), 40)], "-")
}

// Another returns another application in the same namespace.
func (e *Env) Another(name string) *Env {
	other := *e
	other.Name, other.Repository = name, e.Namespace+"/"+name
	return &other
}

// Create creates objects, in their order.
func (e *Env) Create(objects ...client.Object) {
	e.T.Helper()
	for _, o := range objects {
		if err := e.Plane.Client().Create(e.T.Context(), o); err != nil {
			e.T.Fatalf("create %T: %v", o, err)
		}
	}
}

// CreateFlux creates the namespace and all Flux objects of the application.
func (e *Env) CreateFlux() {
	e.T.Helper()
	e.Create(e.Flux(e.Plane.Registry.Host())...)
}

// Read fills an object with the state in the API server.
func (e *Env) Read(object client.Object) {
	e.T.Helper()
	if err := e.Plane.Client().Get(e.T.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		e.T.Fatalf("read %T: %v", object, err)
	}
}

// Change reads an object and patches the changes that change makes.
func (e *Env) Change(object client.Object, change func()) {
	e.T.Helper()
	e.Read(object)
	before := object.DeepCopyObject().(client.Object)
	change()
	if err := e.Plane.Client().Patch(e.T.Context(), object, client.MergeFrom(before)); err != nil {
		e.T.Fatalf("change %T: %v", object, err)
	}
}

// SetBakeTime changes how long the Rollout's releases bake, including one that bakes now.
func (e *Env) SetBakeTime(bake time.Duration) {
	e.T.Helper()
	rollout := e.Rollout()
	e.Change(rollout, func() { rollout.Spec.BakeTime = &metav1.Duration{Duration: bake} })
}

// SetDeployTimeout changes by when releases must be applied, including one that is not
// applied yet. 0 means never.
func (e *Env) SetDeployTimeout(timeout time.Duration) {
	e.T.Helper()
	rollout := e.Rollout()
	e.Change(rollout, func() {
		if rollout.Spec.DeployTimeout = nil; timeout > 0 {
			rollout.Spec.DeployTimeout = &metav1.Duration{Duration: timeout}
		}
	})
}

// ChangeStatus reads an object and patches the changes that change makes to its status.
func (e *Env) ChangeStatus(object client.Object, change func()) {
	e.T.Helper()
	e.Read(object)
	before := object.DeepCopyObject().(client.Object)
	change()
	if err := e.Plane.Client().Status().Patch(e.T.Context(), object, client.MergeFrom(before)); err != nil {
		e.T.Fatalf("change the status of %T: %v", object, err)
	}
}

// Delete deletes an object.
func (e *Env) Delete(object client.Object) {
	e.T.Helper()
	if err := e.Plane.Client().Delete(e.T.Context(), object); err != nil {
		e.T.Fatalf("delete %T: %v", object, err)
	}
}

// Ask annotates the Rollout, as users do to request something once.
func (e *Env) Ask(annotation, value string) {
	e.T.Helper()
	rollout := e.Rollout()
	e.Change(rollout, func() { metav1.SetMetaDataAnnotation(&rollout.ObjectMeta, annotation, value) })
}

// Pin sets spec.wantedVersion. An empty version removes it.
func (e *Env) Pin(version string) {
	e.T.Helper()
	rollout := e.Rollout()
	e.Change(rollout, func() {
		rollout.Spec.WantedVersion = nil
		if version != "" {
			rollout.Spec.WantedVersion = &version
		}
	})
}

// Push stores an artifact in the registry and returns its digest.
func (e *Env) Push(artifact controlplane.Artifact) string {
	e.T.Helper()
	digest, err := e.Plane.Registry.Push(e.T.Context(), artifact)
	if err != nil {
		e.T.Fatal(err)
	}
	return digest
}

// Publish pushes an artifact and makes Flux scan the repository.
func (e *Env) Publish(artifact controlplane.Artifact) {
	e.T.Helper()
	e.Push(artifact)
	e.Scan()
}

// Scan requests a scan of only the application's repository, because others may be
// unreachable on purpose.
func (e *Env) Scan() {
	e.T.Helper()
	if err := e.Plane.RequestReconcile(e.T.Context(), e.ImageRepository("")); err != nil {
		e.T.Fatal(err)
	}
}
