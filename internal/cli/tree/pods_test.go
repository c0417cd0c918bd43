// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
)

func container(state, before corev1.ContainerState, ready bool) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
		{Name: "log", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		{Name: "web", Ready: ready, State: state, LastTerminationState: before},
	}}
}

func TestWhyAPodDoesNotStart(t *testing.T) {
	waits := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	ended := func(reason string, code int32) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code}}
	}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	unscheduled := corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available: 3 Insufficient cpu.",
	}}}
	notReady := container(runs, corev1.ContainerState{}, true)
	notReady.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, Message: "containers with unready status: [web]"}}
	ready := container(runs, corev1.ContainerState{}, true)
	ready.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	for name, tt := range map[string]struct {
		status corev1.PodStatus
		want   []string
	}{
		"crashing":      {crashing, []string{"Failed: container web: CrashLoopBackOff: back-off 5m0s restarting failed container; ended before with OOMKilled, exit code 137"}},
		"no image":      {container(waits("ImagePullBackOff", `Back-off pulling image "web:1"`), corev1.ContainerState{}, false), []string{`Failed: container web: ImagePullBackOff: Back-off pulling image "web:1"`}},
		"being created": {container(waits("ContainerCreating", ""), corev1.ContainerState{}, false), []string{"Waits: container web: ContainerCreating"}},
		"no node":       {unscheduled, []string{"Failed: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu."}},
		"ended":         {container(ended("Error", 2), corev1.ContainerState{}, false), []string{"Waits: container web: Error, exit code 2"}},
		"runs again":    {container(runs, ended("Error", 2), false), []string{"Waits: container web: ended before with Error, exit code 2"}},
		"not ready":     {notReady, []string{"Waits: containers with unready status: [web]"}},
		"evicted":       {corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on resource: memory."}, []string{"Failed: Evicted: The node was low on resource: memory."}},
		"new":           {corev1.PodStatus{Phase: corev1.PodPending}, []string{"Waits: Pending"}},
		"ready":         {ready, nil},
	} {
		t.Run(name, func(t *testing.T) {
			web := broken("web")
			other := podOf(broken("other"), "other", crashing)
			other.Labels["app"] = "web" // selected, and of another Deployment
			cluster := clusterOf(t, append(shop(web), podOf(web, "web-7d4b-x", tt.status), other)...)
			built := build(t, cluster, running(), tree.Limits{})
			if diff := cmp.Diff(tt.want, find(built, "Pod/web-7d4b-x")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got := find(built, "Pod/other"); got != nil {
				t.Errorf("the pod of another Deployment is shown: %s", got)
			}
		})
	}
}

func TestFewPodsOfAWorkloadAreShownAndTheOthersCounted(t *testing.T) {
	web := broken("web")
	var pods []client.Object
	for i := range 13 {
		pods = append(pods, podOf(web, fmt.Sprintf("web-7d4b-%02d", i), crashing))
	}
	built := build(t, clusterOf(t, append(shop(web), pods...)...), running(), tree.Limits{})
	if diff := cmp.Diff([]string{"Failed: 3 more pods are not ready"}, find(built, "pods")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
