// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/statefulsets"
)

// stuckReasons are the waiting reasons of a container that do not end by themselves.
// RunContainerError is not one of them: the container may have run before, and the kubelet
// tries again. If it fails again, CrashLoopBackOff follows.
var stuckReasons = []string{
	"CrashLoopBackOff",
	"ImagePullBackOff",
	"ErrImagePull",
	"ErrImageNeverPull",
	"ImageInspectError",
	"InvalidImageName",
	"SignatureValidationFailed",
	"CreateContainerConfigError",
	"CreateContainerError",
}

// SetFacts returns the facts about a StatefulSet that the plan of a rollout group depends on,
// except its pods. The controller and the explanation of its decisions both use them.
func SetFacts(set *appsv1.StatefulSet) statefulsets.Set {
	facts := statefulsets.Set{
		Name:               set.Name,
		UID:                set.UID,
		Generation:         set.Generation,
		ObservedGeneration: set.Status.ObservedGeneration,
		Deleting:           !set.DeletionTimestamp.IsZero(),
		Strategy:           string(set.Spec.UpdateStrategy.Type),
		Replicas:           ptr.Deref(set.Spec.Replicas, 1),
		MinReady:           time.Duration(set.Spec.MinReadySeconds) * time.Second,
		MaxUnavailable:     set.Annotations[rolloutgroup.MaxUnavailableAnnotation],
		Paused:             set.Annotations[rolloutgroup.PausedAnnotation] == rolloutgroup.PausedValue,
		CurrentRevision:    set.Status.CurrentRevision,
		UpdateRevision:     set.Status.UpdateRevision,
		StatusReplicas:     set.Status.Replicas,
		StatusReady:        set.Status.ReadyReplicas,
		StatusUpdated:      set.Status.UpdatedReplicas,
	}
	if set.Spec.Ordinals != nil {
		facts.FirstOrdinal = set.Spec.Ordinals.Start
	}
	return facts
}

// PodFacts returns the facts about a pod that a plan depends on.
func PodFacts(pod *corev1.Pod) statefulsets.Pod {
	facts := statefulsets.Pod{
		Name:        pod.Name,
		UID:         pod.UID,
		Revision:    pod.Labels[appsv1.StatefulSetRevisionLabel],
		Terminating: !pod.DeletionTimestamp.IsZero(),
		Stuck:       stuckIn(pod),
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			facts.Ready, facts.ReadySince = true, c.LastTransitionTime.Time
		}
	}
	return facts
}

// stuckIn returns why the pod cannot start; empty if no such reason is known.
func stuckIn(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return c.Reason
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if c.State.Waiting != nil && slices.Contains(stuckReasons, c.State.Waiting.Reason) {
			return c.State.Waiting.Reason
		}
	}
	return ""
}
