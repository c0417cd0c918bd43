// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// Case 39.
func TestTurnsInsideARelease(t *testing.T) {
	first, second, third := deployment("a"), deployment("b"), deployment("c")
	first.Status.UpdatedReplicas, first.Status.UnavailableReplicas, first.Status.AvailableReplicas = 0, 1, 0
	second.Spec.Paused = true
	second.Annotations = map[string]string{coordinationv1.HeldByAnnotation: "one-at-a-time"}
	second.Status.UpdatedReplicas = 0
	name := func(d *appsv1.Deployment) string { return fixture.Namespace + "/" + d.Name }
	coordination := &coordinationv1.DeploymentCoordination{ObjectMeta: named("one-at-a-time"), Status: coordinationv1.DeploymentCoordinationStatus{
		ActiveDeployment: name(first), Deployments: []string{name(first), name(second), name(third)},
		DeploymentStates: []coordinationv1.DeploymentState{{Name: name(first), HasPendingChanges: true}, {Name: name(second), HasPendingChanges: true}, {Name: name(third)}},
		Conditions: []metav1.Condition{
			{Type: coordinationv1.ReadyCondition, Status: metav1.ConditionFalse, Message: "1 of 3 Deployments are rolled out"},
			{Type: coordinationv1.ProgressingCondition, Status: metav1.ConditionTrue, Message: "shop-prod/a rolls out: 0 of 1 replicas are updated, 0 available"},
		},
	}}
	other := &coordinationv1.DeploymentCoordination{ObjectMeta: named("of-others")}
	objects := append(shop(first, second, third), coordination, other)
	golden(t, "coordination", draw(t, build(t, clusterOf(t, objects...), running(), tree.Limits{}), tree.Folding{}))
}

func TestSeveralDeploymentsHaveATurn(t *testing.T) {
	first, second, third := deployment("a"), deployment("b"), deployment("c")
	name := func(d *appsv1.Deployment) string { return fixture.Namespace + "/" + d.Name }
	coordination := &coordinationv1.DeploymentCoordination{ObjectMeta: named("two-at-a-time"), Status: coordinationv1.DeploymentCoordinationStatus{
		ActiveDeployment: name(first), ActiveDeployments: []string{name(first), name(second)},
		Deployments: []string{name(first), name(second), name(third)},
		DeploymentStates: []coordinationv1.DeploymentState{
			{Name: name(first), HasPendingChanges: true}, {Name: name(second), HasPendingChanges: true}, {Name: name(third), HasPendingChanges: true},
		},
		Conditions: []metav1.Condition{
			{Type: coordinationv1.ProgressingCondition, Status: metav1.ConditionTrue, Message: "0 of 3 Deployments are rolled out"},
		},
	}}
	golden(t, "coordination-of-two", draw(t, build(t, clusterOf(t, append(shop(first, second, third), coordination)...), running(), tree.Limits{}), tree.Folding{}))
}

// zone returns a StatefulSet of a rollout group, and its pods at these revisions.
func zone(name string, revisions ...string) (*appsv1.StatefulSet, []client.Object) {
	replicas := int32(len(revisions))
	set := &appsv1.StatefulSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"}, ObjectMeta: named(name),
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
		},
		Status: appsv1.StatefulSetStatus{
			ObservedGeneration: 1, Replicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
			CurrentRevision: "old", UpdateRevision: "new",
		},
	}
	set.Labels = map[string]string{rolloutgroup.Label: "store"}
	var pods []client.Object
	for i, revision := range revisions {
		pod := &corev1.Pod{ObjectMeta: named(fmt.Sprintf("%s-%d", name, i))}
		pod.Labels = map[string]string{"app": name, appsv1.StatefulSetRevisionLabel: revision}
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "StatefulSet", Name: name, UID: set.UID, Controller: ptr.To(true)}}
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)}}
		if revision == "new" {
			set.Status.UpdatedReplicas++
		}
		pods = append(pods, pod)
	}
	return set, pods
}

func TestTurnsOfARolloutGroup(t *testing.T) {
	a, podsOfA := zone("zone-a", "new", "old")
	b, podsOfB := zone("zone-b", "old", "old")
	c, podsOfC := zone("zone-c", "old", "old")
	podsOfC[1].(*corev1.Pod).Status.Conditions = nil
	objects := append(append(append(shop(a, b, c), podsOfA...), podsOfB...), podsOfC...)
	golden(t, "group", draw(t, build(t, clusterOf(t, objects...), running(), tree.Limits{}), tree.Folding{}))
}

func TestCoordinationsThatAreNotServedAreNone(t *testing.T) {
	for name, notServed := range map[string]error{
		"by the mapping": &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "DeploymentCoordination"}},
		"by the answer":  apierrors.NewNotFound(schema.GroupResource{Resource: "deploymentcoordinations"}, ""),
	} {
		t.Run(name, func(t *testing.T) {
			cluster := clusterOf(t, shop(deployment("a"))...)
			if err := cluster.Fail(&coordinationv1.DeploymentCoordination{}, notServed); err != nil {
				t.Fatal(err)
			}
			if text := draw(t, build(t, cluster, running(), tree.Limits{}), tree.Folding{}); strings.Contains(text, "Turns") {
				t.Errorf("there are turns:\n%s", text)
			}
		})
	}
}
