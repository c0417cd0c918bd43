// SPDX-License-Identifier: Apache-2.0

package program

import (
	"errors"
	"testing"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// What a user may not read concerns only the Rollouts whose decisions depend on it.
func TestUnreadConcernsWhoDependsOnIt(t *testing.T) {
	scheme, _, err := NewScheme(imagev1.GroupVersion.Version)
	if err != nil {
		t.Fatal(err)
	}
	after := &environmentsv1.Environment{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "shop"}}
	after.Spec.RolloutRef.Name, after.Spec.Name, after.Spec.Environment = "shop", "shop", "production"
	after.Spec.Backend.Type = environmentsv1.BackendCluster
	after.Spec.Upstreams = []environmentsv1.Upstream{{Environment: "staging", Namespace: "staging", Rollout: "shop"}}
	facts, err := snapshot.New(scheme, fixture.MakeRollout("shop").Obj(), fixture.MakeRollout("web").Obj(), after)
	if err != nil {
		t.Fatal(err)
	}
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "any"}, "", errors.New("no right"))
	err = errors.Join(index(t.Context(), facts), facts.FailIn("staging", &environmentsv1.EnvironmentList{}, refused),
		facts.Fail(&v1alpha1.ClusterRolloutSchedule{}, refused))
	if err != nil {
		t.Fatal(err)
	}
	p := New("kubectl rollouts", genericiooptions.IOStreams{})
	for name, want := range map[string]Unread{
		"shop": {"ClusterRolloutSchedules": true, "Environments": false},
		"web":  {"ClusterRolloutSchedules": true},
	} {
		v, err := p.ViewIn(t.Context(), facts, client.ObjectKey{Namespace: fixture.Namespace, Name: name}, fixture.Noon)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, v.Unread); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if v.Gates.Problem != nil {
			t.Errorf("%s is held by what the user may not read: %v", name, v.Gates.Problem)
		}
	}
}
