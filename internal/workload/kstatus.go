// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kstatus judges an object as Flux does.
func kstatus(object *unstructured.Unstructured) State {
	result, err := status.Compute(object)
	if err != nil {
		return incomprehensible(err)
	}
	state := State{Phase: phase(result.Status), Message: strings.TrimSpace(result.Message)}
	state.ObservedGeneration, _, _ = unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	switch state.Phase {
	case Failed:
		state.Since = failedSince(object)
	case Progressing:
		state.RecheckAt = schedulingDeadline(object, result)
	case Current, Held, Terminating, Unknown:
	}
	return state
}

func phase(s status.Status) Phase {
	switch s {
	case status.CurrentStatus:
		return Current
	case status.InProgressStatus:
		return Progressing
	case status.FailedStatus:
		return Failed
	case status.TerminatingStatus:
		return Terminating
	case status.NotFoundStatus, status.UnknownStatus:
	}
	return Unknown
}

// kstatusOf judges an object of a Go type, which seldom contains its kind.
func kstatusOf(object any, kind schema.GroupVersionKind) State {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return incomprehensible(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	return kstatus(u)
}

// failedSince returns the transition time of the Stalled condition, in which an object
// dates its own failure, or else of the condition that changed last.
func failedSince(object *unstructured.Unstructured) time.Time {
	var newest time.Time
	for _, c := range conditionsOf(object) {
		if c.Type == meta.StalledCondition && c.Status == metav1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
		if c.LastTransitionTime.After(newest) {
			newest = c.LastTransitionTime.Time
		}
	}
	return newest
}

// conditionsOf skips entries that cannot be decoded as a condition: one bad timestamp
// must not hide the others.
func conditionsOf(object *unstructured.Unstructured) []metav1.Condition {
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	conditions := make([]metav1.Condition, 0, len(list))
	for _, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			continue
		}
		var c metav1.Condition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &c); err == nil {
			conditions = append(conditions, c)
		}
	}
	return conditions
}

// schedulingDeadline returns when a Pod that cannot be scheduled counts as failed: the
// only verdict of kstatus that changes without an event.
func schedulingDeadline(object *unstructured.Unstructured, result *status.Result) time.Time {
	if object.GroupVersionKind().GroupKind() != corev1.SchemeGroupVersion.WithKind("Pod").GroupKind() {
		return time.Time{}
	}
	for _, c := range result.Conditions {
		if c.Reason == "PodNotScheduled" {
			return object.GetCreationTimestamp().Add(status.ScheduleWindow)
		}
	}
	return time.Time{}
}
