// SPDX-License-Identifier: Apache-2.0

package env

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Application has two targets: an OCIRepository, and a Kustomization that consumes it and
// has a variable. Its Rollout keeps the whole history.
type Application struct {
	*Env
	last string
}

// NewApplication creates an application with all its objects. Each option changes
// the spec of its Rollout.
func NewApplication(t *testing.T, plane *Plane, options ...func(*v1alpha1.RolloutSpec)) *Application {
	t.Helper()
	a := &Application{Env: New(t, plane)}
	objects := a.Flux(plane.Registry.Host())
	objects[len(objects)-1].SetAnnotations(map[string]string{
		v1alpha1.SubstituteAnnotationPrefix + "VERSION" + v1alpha1.SubstituteAnnotationSuffix: a.Name,
	})
	a.Create(objects...)
	a.Create(a.HealthCheck(), a.Rollout(append(options, keepAll)...))
	return a
}

func keepAll(spec *v1alpha1.RolloutSpec) { spec.VersionHistoryLimit = new(int32(1000)) }

// Release publishes a version that is newer than those before.
func (a *Application) Release(version string) {
	a.T.Helper()
	a.Publish(a.ConfigRelease(version))
	a.last = version
}

// HasEveryReleaseOnce checks that the history consists of the releases, that each
// succeeded, and that the ids begin at 1.
func (a *Application) HasEveryReleaseOnce(released []string) {
	a.T.Helper()
	var want []string
	for i := len(released) - 1; i >= 0; i-- {
		want = append(want, fmt.Sprintf("%d %s Succeeded", i+1, released[i]))
	}
	if diff := cmp.Diff(want, History(a.Live())); diff != "" {
		a.T.Errorf("%s: history (-want +got):\n%s", a.Namespace, diff)
	}
}

// Agrees checks that the newest release is the newest entry of the history, and that the
// targets are set to it and Flux has applied it.
func (a *Application) Agrees() {
	a.T.Helper()
	repository, kustomization := a.OCIRepository(""), a.Kustomization()
	applied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: a.Namespace, Name: a.Name}}
	a.Read(repository)
	a.Read(kustomization)
	a.Read(applied)
	revision, _, _ := strings.Cut(kustomization.Status.LastAppliedRevision, "@")
	got := map[string]string{
		"history":       a.Live().Current().Version.Tag,
		"OCIRepository": repository.Spec.Reference.Tag,
		"substitute":    kustomization.Spec.PostBuild.Substitute["VERSION"],
		"revision":      revision,
		"ConfigMap":     applied.Data["version"],
	}
	want := map[string]string{}
	for place := range got {
		want[place] = a.last
	}
	if diff := cmp.Diff(want, got); diff != "" {
		a.T.Errorf("%s: versions (-want +got):\n%s", a.Namespace, diff)
	}
}

// WroteEachTargetOnce checks that the spec of each target was written once for each of a
// number of releases, and not in any other way after its creation.
func (a *Application) WroteEachTargetOnce(releases int) {
	a.T.Helper()
	repository, kustomization := a.OCIRepository(""), a.Kustomization()
	a.Read(repository)
	a.Read(kustomization)
	want := int64(releases) + 1
	got := map[string]int64{"OCIRepository": repository.Generation, "Kustomization": kustomization.Generation}
	if diff := cmp.Diff(map[string]int64{"OCIRepository": want, "Kustomization": want}, got); diff != "" {
		a.T.Errorf("%s: generations of the targets (-want +got):\n%s", a.Namespace, diff)
	}
}
