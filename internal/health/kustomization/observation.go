// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// observation is what one object says of itself. Its status is Unknown when it
// could not be read or understood.
type observation struct {
	name    string
	status  status.Status
	message string
	// since is when a failure began; zero when the object does not say.
	since time.Time
	// recheckAt is when kstatus may judge the same object differently.
	recheckAt time.Time
}

// objectName reads "Deployment shop/web", or "Namespace shop" outside of one.
func objectName(kind, namespace, name string) string {
	if namespace == "" {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}

func observe(object *unstructured.Unstructured) observation {
	seen := observation{name: objectName(object.GetKind(), object.GetNamespace(), object.GetName())}
	result, err := status.Compute(object)
	if err != nil {
		seen.status, seen.message = status.UnknownStatus, "its status cannot be understood: "+err.Error()
		return seen
	}
	seen.status, seen.message = result.Status, strings.TrimSpace(result.Message)
	switch result.Status {
	case status.FailedStatus:
		seen.since = failedSince(object)
	case status.InProgressStatus:
		seen.recheckAt = schedulingDeadline(object, result)
	case status.CurrentStatus, status.TerminatingStatus, status.NotFoundStatus, status.UnknownStatus:
	}
	return seen
}

// failedSince is the transition of the Stalled condition, by which an object
// dates its own failure, or of the condition that changed last.
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

// conditionsOf leaves out what does not read as a condition: one bad timestamp
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

// schedulingDeadline is when a Pod that nobody can schedule counts as failed:
// the one verdict of kstatus that changes without an event.
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
