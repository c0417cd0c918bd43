// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

func TestEveryStateIsSeenInOrderAndTheAPIServerMayBeAwayMeanwhile(t *testing.T) {
	plane, err := controlplane.Start(t.Context(), controlplane.Options{CRDPaths: []string{scenario.CRDs()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := v1alpha1.AddToScheme(plane.Client().Scheme()); err != nil {
		t.Fatal(err)
	}
	create(t, plane, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.Namespace}})
	first, check := fixture.MakeRollout("first").Obj(), fixture.MakeHealthCheck("web").Obj()
	create(t, plane, first)

	recorder := Watch(t, plane, "", &v1alpha1.RolloutList{}, &v1alpha1.HealthCheckList{})
	create(t, plane, check)
	for _, step := range []string{"1", "2"} {
		label(t, plane, first, step)
		label(t, plane, check, step)
	}
	before := recorder.Sights()
	if err := plane.Part(parts.APIServer).Kill(); err != nil {
		t.Fatal(err)
	}
	if err := plane.Part(parts.APIServer).Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	label(t, plane, first, "3")
	create(t, plane, fixture.MakeRollout("second").Obj())
	if err := plane.Client().Delete(t.Context(), check); err != nil {
		t.Fatal(err)
	}

	late := &Recorder{t: t, client: recorder.client, latest: map[types.UID]Sight{}}
	for _, s := range before {
		late.latest[s.Object.GetUID()] = s
	}
	if got := late.lacks(t.Context(), &v1alpha1.HealthCheckList{}); !strings.Contains(got, "the deletion of ") {
		t.Errorf("a record without the deletion lacks %q", got)
	}
	if diff := cmp.Diff([]string{"first ", "web ", "first 1", "web 1", "first 2", "web 2"}, reported(before)); diff != "" {
		t.Errorf("states before (-want +got):\n%s", diff)
	}
	after := reported(recorder.Sights()[len(before):])
	if diff := cmp.Diff([]string{"first 3", "second ", "web 2 gone"}, after); diff != "" {
		t.Errorf("states after (-want +got):\n%s", diff)
	}
	all := Remembered(t, plane, fixture.Namespace)
	if diff := cmp.Diff(append(reported(before), after...), reported(all)); diff != "" {
		t.Errorf("states that etcd remembers (-seen +remembered):\n%s", diff)
	}
}

func create(t *testing.T, plane *controlplane.ControlPlane, object client.Object) {
	t.Helper()
	object.SetUID("")
	object.SetGeneration(0)
	if err := plane.Client().Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// label changes a label of an object, which gives it another state.
func label(t *testing.T, plane *controlplane.ControlPlane, object client.Object, step string) {
	t.Helper()
	before := object.DeepCopyObject().(client.Object)
	object.SetLabels(map[string]string{"step": step})
	if err := plane.Client().Patch(t.Context(), object, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func reported(seen []Sight) []string {
	var states []string
	for _, s := range seen {
		state := fmt.Sprintf("%s %s", s.Object.GetName(), s.Object.GetLabels()["step"])
		if s.Gone {
			state += " gone"
		}
		states = append(states, state)
	}
	return states
}
