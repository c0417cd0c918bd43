// SPDX-License-Identifier: Apache-2.0

package job

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

const (
	// mostPods is how many Pods of a Job are looked at.
	mostPods = 100
	// longestMessage is how many characters of a termination message are shown.
	longestMessage = 256
)

// pods returns Pods of a Job. Others may have its labels.
func (r *Runner) pods(ctx context.Context, job *batchv1.Job) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := r.Reader.List(ctx, list, client.InNamespace(job.Namespace), client.Limit(mostPods), client.MatchingLabels{batchv1.JobNameLabel: job.Name})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return !isOwned(&p, job.UID) }), nil
}

// cannotStart are the reasons of Kubernetes why a container waits that somebody must
// change something about.
var cannotStart = map[string]string{
	"ErrImagePull":               "its image cannot be pulled",
	"ImagePullBackOff":           "its image cannot be pulled",
	"ErrImageNeverPull":          "its image is not on the node",
	"InvalidImageName":           "its image has an invalid name",
	"CreateContainerConfigError": "it uses a ConfigMap or Secret that does not exist",
	"CreateContainerError":       "it cannot be created",
}

// obstacle returns why Pods do not run; empty if nothing keeps them from it.
func obstacle(pods []corev1.Pod) string {
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase != corev1.PodPending || pod.DeletionTimestamp != nil {
			continue
		}
		if !isSchedulable(pod) {
			return fmt.Sprintf("Pod %s cannot be scheduled", pod.Name)
		}
		for _, status := range containers(pod) {
			if waiting := status.State.Waiting; waiting != nil && cannotStart[waiting.Reason] != "" {
				return fmt.Sprintf("container %s: %s", status.Name, cannotStart[waiting.Reason])
			}
		}
	}
	return ""
}

func isSchedulable(pod *corev1.Pod) bool {
	return !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

func containers(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// lastWords returns the termination message of the container that failed last, or else its
// exit code. It is empty if no container has failed.
func lastWords(pods []corev1.Pod) string {
	var last *corev1.ContainerStateTerminated
	for i := range pods {
		for _, status := range containers(&pods[i]) {
			for _, state := range []corev1.ContainerState{status.LastTerminationState, status.State} {
				end := state.Terminated
				if end != nil && end.ExitCode != 0 && (last == nil || last.FinishedAt.Before(&end.FinishedAt)) {
					last = end
				}
			}
		}
	}
	if last == nil {
		return ""
	}
	if message := truncate.Line(last.Message, longestMessage); message != "" {
		return message
	}
	return fmt.Sprintf("exit code %d", last.ExitCode)
}
