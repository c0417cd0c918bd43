// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Kubernetes does not say of a workload whether it has run and failed. It only says that it
// has waited long enough, which may be nobody's fault, and of one that was rolled out once
// it does not even say that. The pods of the newest template show it.

// RevisionAnnotation has the revision of a Deployment, and of each of its ReplicaSets.
const RevisionAnnotation = "deployment.kubernetes.io/revision"

// Pods says which pods a workload has.
type Pods struct {
	// Kind is Deployment, StatefulSet or DaemonSet.
	Kind string
	// Namespace and UID of the workload.
	Namespace string
	UID       types.UID
	// Selector of the pods, and of the ReplicaSets of a Deployment.
	Selector labels.Selector
	// Revision is the newest one: of a Deployment the value of RevisionAnnotation, and of a
	// StatefulSet the label of the pods. It is empty for a DaemonSet.
	Revision string
}

// PodsOf returns which pods show why a workload is in its state; nil if none do. There are
// none of a generation that its controller has not observed.
func PodsOf(object *unstructured.Unstructured, state State) *Pods {
	kind := object.GroupVersionKind()
	observed := state.ObservedGeneration >= object.GetGeneration()
	if kind.Group != appsv1.GroupName || !observed || state.Phase != Progressing && state.Phase != Failed {
		return nil
	}
	pods := &Pods{Kind: kind.Kind, Namespace: object.GetNamespace(), UID: object.GetUID()}
	switch kind.Kind {
	case deploymentKind.Kind:
		pods.Revision = object.GetAnnotations()[RevisionAnnotation]
	case statefulSetKind.Kind:
		pods.Revision, _, _ = unstructured.NestedString(object.Object, "status", "updateRevision")
	case "DaemonSet":
	default:
		return nil
	}
	if pods.Selector = selectorOf(object); pods.Selector == nil {
		return nil
	}
	return pods
}

// selectorOf returns the selector of a workload; nil if it selects nothing or everything.
func selectorOf(object *unstructured.Unstructured) labels.Selector {
	spec := struct {
		Spec struct {
			Selector *metav1.LabelSelector `json:"selector"`
		} `json:"spec"`
	}{}
	if err := fromUnstructured(object, &spec); err != nil || spec.Spec.Selector == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.Spec.Selector)
	if err != nil || selector.Empty() {
		return nil
	}
	return selector
}

// Newest returns the pods of the newest revision, except those that are being deleted. Of a
// DaemonSet it is the revision of the youngest pod: pods are made of the newest template
// only.
func Newest(kind, revision string, pods []corev1.Pod) []corev1.Pod {
	pods = slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	if kind == "DaemonSet" && len(pods) > 0 {
		youngest := slices.MaxFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
		revision = youngest.Labels[appsv1.ControllerRevisionHashLabelKey]
	}
	label := appsv1.ControllerRevisionHashLabelKey
	if kind == deploymentKind.Kind {
		label = appsv1.DefaultDeploymentUniqueLabelKey
	}
	return slices.DeleteFunc(pods, func(p corev1.Pod) bool { return p.Labels[label] != revision })
}

// restartsOfALoop is how often a container must have been restarted before it is said to
// crash again and again.
const restartsOfALoop = 3

const (
	// podsRecheck is how often pods are looked at while they start: Kubernetes reports
	// nothing of a container that crashes before it was ready.
	podsRecheck = 30 * time.Second
	// podsSettle is how long after a start that is done.
	podsSettle = 10 * time.Minute
)

// ByPods returns the state of a workload that is not Current, as the pods of its newest
// revision show it: a container that crashes again and again is a failure, and a missed
// deadline is NotStarted unless something has run and failed.
func (s State) ByPods(pods []corev1.Pod, now time.Time) State {
	if crash := crashOf(pods); crash != "" {
		s.Phase, s.Message, s.Since, s.RecheckAt, s.NotStarted = Failed, crash, time.Time{}, time.Time{}, false
		return s
	}
	waits := slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !isReady(p) })
	ran := slices.ContainsFunc(pods, func(p corev1.Pod) bool { return !isReady(p) && hasRun(p) })
	s.NotStarted = !ran && (waits || s.Phase == Failed)
	if s.NotStarted && s.Phase == Failed {
		s.Message = fmt.Sprintf("%s; nothing that has run has failed: %s", s.Message, whyNotStarted(pods))
	}
	if s.Phase == Progressing && slices.ContainsFunc(pods, func(p corev1.Pod) bool { return changedWithin(p, now) }) {
		s.RecheckAt = now.Add(podsRecheck)
	}
	return s
}

// WithoutPods returns the state of a workload that is not Current, and whose pods could not
// be read, and why: nothing shows that it has run and failed.
func (s State) WithoutPods(why string) State {
	if s.NotStarted = s.Phase == Failed; s.NotStarted {
		s.Message = fmt.Sprintf("%s; its pods are not known: %s", s.Message, why)
	}
	return s
}

// crashOf names the container that crashes again and again. It names neither the pod nor the
// number of restarts: the message must not change with each of them.
func crashOf(pods []corev1.Pod) string {
	var crashes []string
	for i := range pods {
		for _, c := range containersOf(&pods[i]) {
			waiting := c.State.Waiting
			if waiting != nil && waiting.Reason == "CrashLoopBackOff" && c.RestartCount >= restartsOfALoop {
				crashes = append(crashes, fmt.Sprintf("container %s crashes again and again%s", c.Name, lastEnd(c)))
			}
		}
	}
	if len(crashes) == 0 {
		return ""
	}
	return slices.Min(crashes)
}

// lastEnd returns how a container ended last.
func lastEnd(c corev1.ContainerStatus) string {
	end := c.LastTerminationState.Terminated
	if end == nil {
		return ""
	}
	return fmt.Sprintf(": %s, exit code %d", end.Reason, end.ExitCode)
}

func containersOf(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

func isReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// hasRun reports whether a container of the application was started, or one that comes
// before it has failed.
func hasRun(pod corev1.Pod) bool {
	started := func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
	}
	failed := func(c corev1.ContainerStatus) bool {
		return c.LastTerminationState.Terminated != nil || c.State.Terminated != nil && c.State.Terminated.ExitCode != 0
	}
	return slices.ContainsFunc(pod.Status.ContainerStatuses, started) || slices.ContainsFunc(pod.Status.InitContainerStatuses, failed)
}

// changedWithin reports whether a pod was created, or one of its containers ended, a short
// time ago.
func changedWithin(pod corev1.Pod, now time.Time) bool {
	last := pod.CreationTimestamp.Time
	for _, c := range containersOf(&pod) {
		if end := c.LastTerminationState.Terminated; end != nil && end.FinishedAt.After(last) {
			last = end.FinishedAt.Time
		}
	}
	return now.Sub(last) < podsSettle
}

// unpulled are the reasons for which a container waits for its image.
var unpulled = []string{"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}

// whyNotStarted says why pods were not started.
func whyNotStarted(pods []corev1.Pod) string {
	var noNode, noImage bool
	for i := range pods {
		for _, c := range pods[i].Status.Conditions {
			noNode = noNode || c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
		}
		for _, c := range containersOf(&pods[i]) {
			noImage = noImage || c.State.Waiting != nil && slices.Contains(unpulled, c.State.Waiting.Reason)
		}
	}
	switch {
	case len(pods) == 0:
		return "it has no pods"
	case noNode:
		return "no node takes its pods"
	case noImage:
		return "an image cannot be pulled"
	}
	return "its containers are not created"
}
