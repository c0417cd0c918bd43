// SPDX-License-Identifier: Apache-2.0

package record

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

// Remembered returns every state that the objects of some namespaces have ever had, from
// etcd. Unlike a watch, this has no gap from a time when the API server, or
// etcd itself, was away.
func Remembered(tb testing.TB, plane *controlplane.ControlPlane, namespaces ...string) []Sight {
	tb.Helper()
	states, err := plane.History(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	var seen []Sight
	for _, state := range states {
		if !slices.Contains(namespaces, state.Object.GetNamespace()) {
			continue
		}
		object, err := typed(plane.Client().Scheme(), state)
		if err != nil {
			tb.Fatal(err)
		}
		if object != nil {
			seen = append(seen, Sight{At: state.Revision, Object: object, Gone: state.Deleted})
		}
	}
	if len(seen) == 0 {
		tb.Fatalf("etcd remembers nothing of %v", namespaces)
	}
	return seen
}

// typed returns a state as an object of its Go type, or nil if the scheme does not know
// the kind.
func typed(scheme *runtime.Scheme, state controlplane.State) (client.Object, error) {
	object, err := scheme.New(state.Object.GroupVersionKind())
	if runtime.IsNotRegisteredError(err) {
		return nil, nil // no object, and nothing went wrong
	}
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(state.Object.Object, object); err != nil {
		return nil, err
	}
	return object.(client.Object), nil
}
