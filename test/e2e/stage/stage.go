// SPDX-License-Identifier: Apache-2.0

package stage

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

// Stage is one application in a namespace of its own, and the test that uses it.
type Stage struct {
	scenario.App
	T     *testing.T
	Plane *Plane
}

// stages makes the namespaces of tests with the same beginning different.
var stages atomic.Int32

// New returns a stage without any objects.
func New(t *testing.T, plane *Plane) *Stage {
	t.Helper()
	namespace := fmt.Sprintf("%s-%d", namespaceOf(t), stages.Add(1))
	s := &Stage{App: scenario.NewApp(namespace, "shop"), T: t, Plane: plane}
	s.Repository = s.Namespace + "/" + s.Name
	s.ProgressDeadline = 5 * time.Second
	return s
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

// Beside returns another application in the same namespace.
func (s *Stage) Beside(name string) *Stage {
	other := *s
	other.Name, other.Repository = name, s.Namespace+"/"+name
	return &other
}

// Create creates objects, in their order.
func (s *Stage) Create(objects ...client.Object) {
	s.T.Helper()
	for _, o := range objects {
		if err := s.Plane.Client().Create(s.T.Context(), o); err != nil {
			s.T.Fatalf("create %T: %v", o, err)
		}
	}
}

// CreateFlux creates the namespace and all Flux objects of the application.
func (s *Stage) CreateFlux() {
	s.T.Helper()
	s.Create(s.Flux(s.Plane.Registry.Host())...)
}

// Read fills an object with the state in the API server.
func (s *Stage) Read(object client.Object) {
	s.T.Helper()
	if err := s.Plane.Client().Get(s.T.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		s.T.Fatalf("read %T: %v", object, err)
	}
}

// Change reads an object and patches the changes that change makes.
func (s *Stage) Change(object client.Object, change func()) {
	s.T.Helper()
	s.Read(object)
	before := object.DeepCopyObject().(client.Object)
	change()
	if err := s.Plane.Client().Patch(s.T.Context(), object, client.MergeFrom(before)); err != nil {
		s.T.Fatalf("change %T: %v", object, err)
	}
}

// ChangeStatus reads an object and patches the changes that change makes to its status.
func (s *Stage) ChangeStatus(object client.Object, change func()) {
	s.T.Helper()
	s.Read(object)
	before := object.DeepCopyObject().(client.Object)
	change()
	if err := s.Plane.Client().Status().Patch(s.T.Context(), object, client.MergeFrom(before)); err != nil {
		s.T.Fatalf("change the status of %T: %v", object, err)
	}
}

// Delete deletes an object.
func (s *Stage) Delete(object client.Object) {
	s.T.Helper()
	if err := s.Plane.Client().Delete(s.T.Context(), object); err != nil {
		s.T.Fatalf("delete %T: %v", object, err)
	}
}

// Ask annotates the Rollout, as users do to request something once.
func (s *Stage) Ask(annotation, value string) {
	s.T.Helper()
	rollout := s.Rollout()
	s.Change(rollout, func() { metav1.SetMetaDataAnnotation(&rollout.ObjectMeta, annotation, value) })
}

// Pin sets spec.wantedVersion. An empty version removes it.
func (s *Stage) Pin(version string) {
	s.T.Helper()
	rollout := s.Rollout()
	s.Change(rollout, func() {
		rollout.Spec.WantedVersion = nil
		if version != "" {
			rollout.Spec.WantedVersion = &version
		}
	})
}

// Push stores an artifact in the registry and returns its digest.
func (s *Stage) Push(artifact controlplane.Artifact) string {
	s.T.Helper()
	digest, err := s.Plane.Registry.Push(s.T.Context(), artifact)
	if err != nil {
		s.T.Fatal(err)
	}
	return digest
}

// Publish pushes an artifact and makes Flux scan the repository.
func (s *Stage) Publish(artifact controlplane.Artifact) {
	s.T.Helper()
	s.Push(artifact)
	s.Scan()
}

// Scan requests a scan of only the application's repository, because others may be
// unreachable on purpose.
func (s *Stage) Scan() {
	s.T.Helper()
	if err := s.Plane.RequestReconcile(s.T.Context(), s.ImageRepository("")); err != nil {
		s.T.Fatal(err)
	}
}
