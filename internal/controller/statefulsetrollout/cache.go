// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
	"github.com/fluxrollouts/rollout-controller/internal/cache"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

// CacheByObject keeps in the cache only the StatefulSets of groups and only the pods of
// StatefulSets, and of both only the fields that a plan depends on. No other code should
// read these kinds from the same cache.
func CacheByObject() map[client.Object]ctrlcache.ByObject {
	return map[client.Object]ctrlcache.ByObject{
		&appsv1.StatefulSet{}: {Label: having(rolloutgroup.Label), Transform: cache.Bounded(trimSet)},
		// The StatefulSet controller sets this label on all its pods, and restores it
		// where it is missing.
		&corev1.Pod{}: {Label: having(appsv1.StatefulSetPodNameLabel), Transform: cache.Bounded(trimPod)},
	}
}

func having(label string) labels.Selector {
	requirement, err := labels.NewRequirement(label, selection.Exists, nil)
	if err != nil {
		panic(err) // the label is a constant
	}
	return labels.NewSelector().Add(*requirement)
}

func trimSet(o any) (any, error) {
	if set, ok := o.(*appsv1.StatefulSet); ok {
		set.ManagedFields = nil
		set.Spec.Template = corev1.PodTemplateSpec{}
		set.Spec.VolumeClaimTemplates = nil
		maps.DeleteFunc(set.Annotations, func(key, _ string) bool { return !slices.Contains(readAnnotations, key) })
	}
	return o, nil
}

// readAnnotations are the annotations of StatefulSets that are read.
var readAnnotations = append(rolloutgroup.UnsupportedAnnotations(),
	rolloutgroup.MaxUnavailableAnnotation, rolloutgroup.PausedAnnotation, unreadable.Annotation)

func trimPod(o any) (any, error) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			DeletionTimestamp: pod.DeletionTimestamp, OwnerReferences: workload.ControllerOf(pod),
			Labels: map[string]string{appsv1.StatefulSetRevisionLabel: pod.Labels[appsv1.StatefulSetRevisionLabel]},
		},
		Status: corev1.PodStatus{
			Conditions:            pod.Status.Conditions,
			InitContainerStatuses: states(pod.Status.InitContainerStatuses),
			ContainerStatuses:     states(pod.Status.ContainerStatuses),
		},
	}, nil
}

// states keeps only the reasons for which containers wait.
func states(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	var waiting []corev1.ContainerStatus
	for _, c := range all {
		if c.State.Waiting != nil {
			waiting = append(waiting, corev1.ContainerStatus{State: corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{Reason: c.State.Waiting.Reason},
			}})
		}
	}
	return waiting
}
