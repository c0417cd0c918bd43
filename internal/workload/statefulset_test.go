// SPDX-License-Identifier: Apache-2.0

package workload_test

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

func statefulSet(wanted int32, has counts, changes ...func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "store-a", Generation: 2,
			Labels: map[string]string{"rollout-group": "store"}, Annotations: map[string]string{},
		},
		Spec: appsv1.StatefulSetSpec{
			Replicas:       &wanted,
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType},
		},
		Status: appsv1.StatefulSetStatus{
			ObservedGeneration: 2, CurrentRevision: "store-a-1", UpdateRevision: "store-a-2",
			Replicas: has[0], UpdatedReplicas: has[1], ReadyReplicas: has[2], AvailableReplicas: has[3],
		},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func TestStatefulSetOfWhichPodsAreReplacedByDeletingThem(t *testing.T) {
	pausedInGroup := func(s *appsv1.StatefulSet) { s.Annotations["grafana.com/rollout-paused"] = "true" }
	for name, tc := range map[string]struct {
		of          *appsv1.StatefulSet
		phase       workload.Phase
		message     string
		outdated    int32
		unavailable int32
	}{
		"is Current when every pod is updated and available": {
			of:    statefulSet(3, counts{3, 3, 3, 3}),
			phase: workload.Current, message: "All pods are updated and available. Replicas: 3",
		},
		"is Current without replicas": {
			of:    statefulSet(0, counts{}),
			phase: workload.Current, message: "All pods are updated and available. Replicas: 0",
		},
		"says how many pods are updated": {
			of:    statefulSet(3, counts{3, 1, 3, 3}),
			phase: workload.Progressing, message: "Updated: 1/3", outdated: 2,
		},
		"says how many pods are there": {
			of:    statefulSet(3, counts{2, 2, 2, 2}),
			phase: workload.Progressing, message: "Replicas: 2/3", unavailable: 1,
		},
		"says how many pods are ready": {
			of:    statefulSet(3, counts{3, 3, 2, 2}),
			phase: workload.Progressing, message: "Ready: 2/3", unavailable: 1,
		},
		"says how many pods have been ready for long enough": {
			of:    statefulSet(3, counts{3, 3, 3, 1}),
			phase: workload.Progressing, message: "Available: 1/3", unavailable: 2,
		},
		"says how many pods are too many": {
			of:    statefulSet(1, counts{3, 3, 3, 3}),
			phase: workload.Progressing, message: "Pending termination: 2",
		},
		"wants one pod if nobody says how many": {
			of:    statefulSet(0, counts{}, func(s *appsv1.StatefulSet) { s.Spec.Replicas = nil }),
			phase: workload.Progressing, message: "Replicas: 0/1", unavailable: 1,
		},
		"is Progressing until its controller has seen the change": {
			of:    statefulSet(3, counts{3, 3, 3, 3}, func(s *appsv1.StatefulSet) { s.Status.ObservedGeneration = 1 }),
			phase: workload.Progressing, message: "StatefulSet generation is 2, but latest observed generation is 1",
		},
		"is Progressing until its controller has seen it at all": {
			of:    statefulSet(0, counts{}, func(s *appsv1.StatefulSet) { s.Status = appsv1.StatefulSetStatus{} }),
			phase: workload.Progressing, message: "StatefulSet generation is 2, but latest observed generation is 0",
		},
		"is Held while its owner has paused its part in a group": {
			of:    statefulSet(3, counts{3, 1, 3, 3}, pausedInGroup),
			phase: workload.Held, message: "held by the annotation grafana.com/rollout-paused (updated: 1/3)", outdated: 2,
		},
		"is not Held if it is in no group": {
			of:    statefulSet(3, counts{3, 1, 3, 3}, pausedInGroup, func(s *appsv1.StatefulSet) { s.Labels = nil }),
			phase: workload.Progressing, message: "Updated: 1/3", outdated: 2,
		},
		"is Current though it is paused, once nothing is left to do": {
			of:    statefulSet(3, counts{3, 3, 3, 3}, pausedInGroup),
			phase: workload.Current, message: "All pods are updated and available. Replicas: 3",
		},
		"is Terminating while it is being deleted": {
			of:    statefulSet(3, counts{3, 3, 3, 3}, func(s *appsv1.StatefulSet) { s.DeletionTimestamp = &metav1.Time{Time: missedAt} }),
			phase: workload.Terminating, message: "Resource scheduled for deletion",
		},
		"is what kstatus calls it if Kubernetes replaces its pods": {
			of: statefulSet(3, counts{3, 1, 3, 3}, func(s *appsv1.StatefulSet) {
				s.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
				s.Status.CurrentReplicas = 2
			}),
			phase: workload.Progressing, message: "current: 2/3", outdated: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			want := workload.State{
				Phase: tc.phase, Message: tc.message, ObservedGeneration: tc.of.Status.ObservedGeneration,
				Outdated: tc.outdated, Unavailable: tc.unavailable,
			}
			g.Expect(workload.StatefulSet(tc.of)).To(Equal(want))
			g.Expect(workload.Of(asUnstructured(t, tc.of))).To(Equal(want), "read from the API")
		})
	}
}
