// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

const (
	// mostTroubled is for how many workloads pods are read.
	mostTroubled = 25
	// mostPods is how many pods of a workload are read.
	mostPods = 100
	// mostShown is how many pods of a workload are shown.
	mostShown = 10
)

// isWorkload reports whether an object has pods that a tree shows.
func isWorkload(o Object) bool {
	return o.Group == appsv1.GroupName && slices.Contains([]string{"Deployment", "StatefulSet", "DaemonSet"}, o.Kind)
}

// readPods adds to the workloads that are not well the pods that do not start, and what
// pods need and is gone.
func (b *below) readPods(ctx context.Context) {
	troubled := slices.DeleteFunc(slices.Clone(b.workloads), func(w read) bool { return w.node.Sign != Failed && w.node.Sign != Waits })
	for i, w := range troubled {
		if i >= mostTroubled {
			w.node.Text = joined(w.node.Text, fmt.Sprintf("its pods were not read: at most %d workloads are looked into", mostTroubled))
			continue
		}
		b.start(func() { w.node.Children = b.pods(ctx, w.object) })
	}
	b.wait()
}

// pods returns nodes for the pods of a workload that are not ready, and for what its pods
// need and is gone.
func (b *below) pods(ctx context.Context, of *unstructured.Unstructured) []*Node {
	selector, err := selectorOf(of)
	pods := &corev1.PodList{}
	if err == nil {
		err = b.from.List(ctx, pods, client.InNamespace(of.GetNamespace()), selector, client.Limit(mostPods))
	}
	if err != nil {
		return []*Node{missing("pods", "its pods: "+because(err))}
	}
	var own []*corev1.Pod
	var all []*Node
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !belongsTo(pod, of) {
			continue
		}
		own = append(own, pod)
		if !workload.PodFacts(pod).Ready {
			all = append(all, podNode(pod))
		}
	}
	all = append(fewer(all), b.gone(ctx, of.GetNamespace(), own)...)
	if pods.Continue != "" {
		all = append(all, missing("pods", fmt.Sprintf("only the first %d of its pods were read", len(pods.Items))))
	}
	return all
}

// fewer returns the first pods, and a node that counts the others.
func fewer(pods []*Node) []*Node {
	more := len(pods) - mostShown
	if more <= 0 {
		return pods
	}
	rest := missing("pods", fmt.Sprintf("%d more pods are not ready", more))
	rest.Sign, rest.Folded = worst(pods[mostShown:]), &Folded{Count: more, Kind: "Pod"}
	return append(pods[:mostShown:mostShown], rest)
}

func selectorOf(of *unstructured.Unstructured) (client.ListOption, error) {
	content, _, _ := unstructured.NestedMap(of.Object, "spec", "selector")
	wanted := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, wanted); err != nil {
		return nil, fmt.Errorf("read spec.selector: %w", err)
	}
	selector, err := metav1.LabelSelectorAsSelector(wanted)
	if err != nil {
		return nil, fmt.Errorf("read spec.selector: %w", err)
	}
	return client.MatchingLabelsSelector{Selector: selector}, nil
}

// belongsTo reports whether a pod is one of a workload. Between a pod and its Deployment
// is a ReplicaSet, whose name follows from the pod's label.
func belongsTo(pod *corev1.Pod, of *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return false
	}
	if of.GetKind() == "Deployment" {
		return owner.Kind == "ReplicaSet" && owner.Name == of.GetName()+"-"+pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	}
	return owner.UID == of.GetUID()
}

// podNode shows why a pod is not ready. Its sign is Failed if the decisions about rollout
// groups count it as stuck.
func podNode(pod *corev1.Pod) *Node {
	node := &Node{
		Object: &Object{Version: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Sign:   Waits,
		Text:   truncate.Message(whyNotReady(pod)),
	}
	if node.Message = node.Text; workload.PodFacts(pod).Stuck != "" || pod.Status.Phase == corev1.PodFailed {
		node.Sign = Failed
	}
	return node
}

// whyNotReady returns the first of these that there is: that the pod is being deleted, the
// scheduler's message, what a container waits for, the message of the condition Ready, and
// the reason and message of the pod.
func whyNotReady(pod *corev1.Pod) string {
	if !pod.DeletionTimestamp.IsZero() {
		return "is being deleted"
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason + ": " + c.Message
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if text := whyWaits(c); text != "" {
			return "container " + c.Name + ": " + text
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Message != "" {
			return c.Message
		}
	}
	return strings.TrimSuffix(cmp.Or(pod.Status.Reason, string(pod.Status.Phase))+": "+pod.Status.Message, ": ")
}

// whyWaits returns why a container does not run, and how it ended before; empty if it
// runs, or has ended without an error.
func whyWaits(c corev1.ContainerStatus) string {
	before := ended(c.LastTerminationState.Terminated)
	if before != "" {
		before = "ended before with " + before
	}
	switch {
	case c.State.Waiting != nil:
		return joined(strings.TrimSuffix(c.State.Waiting.Reason+": "+c.State.Waiting.Message, ": "), before)
	case c.State.Terminated != nil:
		return ended(c.State.Terminated)
	case !c.Ready:
		return before
	}
	return ""
}

// ended returns how a container ended with an error; empty if it did not.
func ended(t *corev1.ContainerStateTerminated) string {
	if t == nil || t.ExitCode == 0 {
		return ""
	}
	return fmt.Sprintf("%s, exit code %d", t.Reason, t.ExitCode)
}
