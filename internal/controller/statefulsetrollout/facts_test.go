// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/coordination/statefulsets"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

func waiting(reason string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}
}

func condition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason string) corev1.PodCondition {
	return corev1.PodCondition{
		Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(time.Unix(1000, 0)),
	}
}

// TestPods also verifies that the cached pod gives the same facts.
func TestPods(t *testing.T) {
	running := corev1.ContainerStatus{Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	for name, tt := range map[string]struct {
		status corev1.PodStatus
		want   statefulsets.Pod
	}{
		"new":       {corev1.PodStatus{}, statefulsets.Pod{}},
		"ready":     {corev1.PodStatus{Conditions: []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionTrue, "")}}, statefulsets.Pod{Ready: true, ReadySince: time.Unix(1000, 0)}},
		"not ready": {corev1.PodStatus{Conditions: []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionFalse, "")}}, statefulsets.Pod{}},
		"unknown":   {corev1.PodStatus{Conditions: []corev1.PodCondition{condition(corev1.PodReady, corev1.ConditionUnknown, "")}}, statefulsets.Pod{}},
		"all containers ready, and a readiness gate not met": {
			corev1.PodStatus{
				Conditions: []corev1.PodCondition{
					condition(corev1.ContainersReady, corev1.ConditionTrue, ""), condition(corev1.PodReady, corev1.ConditionFalse, "ReadinessGatesNotReady"),
				},
				ContainerStatuses: []corev1.ContainerStatus{running},
			}, statefulsets.Pod{},
		},
		"crashing":              {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{running, waiting("CrashLoopBackOff")}}, statefulsets.Pod{Stuck: "CrashLoopBackOff"}},
		"crashing at its start": {corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{waiting("CrashLoopBackOff")}}, statefulsets.Pod{Stuck: "CrashLoopBackOff"}},
		"image not there":       {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("ImagePullBackOff")}}, statefulsets.Pod{Stuck: "ImagePullBackOff"}},
		"image not pulled":      {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("ErrImagePull")}}, statefulsets.Pod{Stuck: "ErrImagePull"}},
		"image not named":       {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("InvalidImageName")}}, statefulsets.Pod{Stuck: "InvalidImageName"}},
		"image never pulled":    {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("ErrImageNeverPull")}}, statefulsets.Pod{Stuck: "ErrImageNeverPull"}},
		"image unreadable":      {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("ImageInspectError")}}, statefulsets.Pod{Stuck: "ImageInspectError"}},
		"image not signed":      {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("SignatureValidationFailed")}}, statefulsets.Pod{Stuck: "SignatureValidationFailed"}},
		// It may have run, and the kubelet tries again. CrashLoopBackOff follows if that fails.
		"container does not run": {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("RunContainerError")}}, statefulsets.Pod{}},
		"no ConfigMap":           {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("CreateContainerConfigError")}}, statefulsets.Pod{Stuck: "CreateContainerConfigError"}},
		"not created":            {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("CreateContainerError")}}, statefulsets.Pod{Stuck: "CreateContainerError"}},
		"being created":          {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("ContainerCreating")}}, statefulsets.Pod{}},
		"no node": {
			corev1.PodStatus{Conditions: []corev1.PodCondition{condition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonUnschedulable)}},
			statefulsets.Pod{Stuck: "Unschedulable"},
		},
		"held back from nodes": {
			corev1.PodStatus{Conditions: []corev1.PodCondition{condition(corev1.PodScheduled, corev1.ConditionFalse, corev1.PodReasonSchedulingGated)}},
			statefulsets.Pod{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "zone-a-0", UID: "1", Labels: map[string]string{appsv1.StatefulSetRevisionLabel: "zone-a-5b"}},
				Status:     tt.status,
			}
			tt.want.Name, tt.want.UID, tt.want.Revision = "zone-a-0", "1", "zone-a-5b"
			trimmed, err := trimPod(pod.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			for from, pod := range map[string]*corev1.Pod{"read": pod, "cached": trimmed.(*corev1.Pod)} {
				if diff := cmp.Diff(tt.want, workload.PodFacts(pod)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", from, diff)
				}
			}
		})
	}
}

func TestSets(t *testing.T) {
	three := int32(3)
	now := metav1.Now()
	for name, tt := range map[string]struct {
		set  appsv1.StatefulSet
		want statefulsets.Set
	}{
		"replicas that are not said are one": {appsv1.StatefulSet{}, statefulsets.Set{Replicas: 1}},
		"everything": {
			appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{
					Name: "a", UID: "u", Generation: 7, DeletionTimestamp: &now,
					Annotations: map[string]string{"rollout-max-unavailable": "25%", "grafana.com/rollout-paused": "true"},
				},
				Spec: appsv1.StatefulSetSpec{
					Replicas: &three, MinReadySeconds: 9, Ordinals: &appsv1.StatefulSetOrdinals{Start: 5},
					UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: "OnDelete"},
				},
				Status: appsv1.StatefulSetStatus{ObservedGeneration: 6, CurrentRevision: "c", UpdateRevision: "u", Replicas: 3, ReadyReplicas: 2, UpdatedReplicas: 1},
			},
			statefulsets.Set{
				Name: "a", UID: "u", Generation: 7, ObservedGeneration: 6, Deleting: true, Strategy: "OnDelete", Replicas: 3, FirstOrdinal: 5,
				MinReady: 9 * time.Second, MaxUnavailable: "25%", Paused: true, CurrentRevision: "c", UpdateRevision: "u",
				StatusReplicas: 3, StatusReady: 2, StatusUpdated: 1,
			},
		},
		"another value does not pause": {
			appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"grafana.com/rollout-paused": "True"}}},
			statefulsets.Set{Replicas: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			trimmed, err := trimSet(tt.set.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			for from, set := range map[string]*appsv1.StatefulSet{"read": &tt.set, "cached": trimmed.(*appsv1.StatefulSet)} {
				if diff := cmp.Diff(tt.want, workload.SetFacts(set)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", from, diff)
				}
			}
		})
	}
}
