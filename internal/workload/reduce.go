// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

const (
	// longestMessage is how many characters of a termination message are kept. Kubernetes
	// stores no more.
	longestMessage = 4096
	// mostContainers is of how many containers of a pod the state is kept, for each of the
	// two lists.
	mostContainers = 100
)

// ReducedPod returns what of a pod shows how far it is, and whose it is. The number and the
// size of everything else is not limited.
func ReducedPod(pod *corev1.Pod) *corev1.Pod {
	reduced := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp, OwnerReferences: ControllerOf(pod),
		},
		Status: corev1.PodStatus{
			Phase:                 pod.Status.Phase,
			InitContainerStatuses: containerStates(pod.Status.InitContainerStatuses),
			ContainerStatuses:     containerStates(pod.Status.ContainerStatuses),
		},
	}
	for _, label := range []string{appsv1.ControllerRevisionHashLabelKey, appsv1.DefaultDeploymentUniqueLabelKey} {
		if value, ok := pod.Labels[label]; ok {
			metav1.SetMetaDataLabel(&reduced.ObjectMeta, label, value)
		}
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.PodScheduled} {
		i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
		if i >= 0 {
			c := pod.Status.Conditions[i]
			c.Message = ""
			reduced.Status.Conditions = append(reduced.Status.Conditions, c)
		}
	}
	return reduced
}

// ControllerOf returns the reference to the controller of an object, and no others; nil if it
// has none.
func ControllerOf(object metav1.Object) []metav1.OwnerReference {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return []metav1.OwnerReference{*owner}
	}
	return nil
}

// containerStates keeps the states of containers.
func containerStates(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	var states []corev1.ContainerStatus
	for i := range min(len(all), mostContainers) {
		c := &all[i]
		states = append(states, corev1.ContainerStatus{
			Name: c.Name, RestartCount: c.RestartCount, State: stateOf(c.State), LastTerminationState: stateOf(c.LastTerminationState),
		})
	}
	return states
}

func stateOf(full corev1.ContainerState) corev1.ContainerState {
	state := corev1.ContainerState{Running: full.Running}
	if full.Waiting != nil {
		state.Waiting = &corev1.ContainerStateWaiting{Reason: briefly(full.Waiting.Reason)}
	}
	if end := full.Terminated; end != nil {
		state.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: end.ExitCode, Reason: briefly(end.Reason), Message: briefly(end.Message), FinishedAt: end.FinishedAt,
		}
	}
	return state
}

// briefly returns the beginning of a text, without the memory of the rest.
func briefly(text string) string { return strings.Clone(truncate.Text(text, longestMessage)) }
