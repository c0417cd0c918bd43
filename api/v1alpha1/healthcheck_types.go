// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HealthCheckClassKustomization is the class of the HealthChecks that this controller
// evaluates itself, with kstatus over a Flux Kustomization and its inventory.
const HealthCheckClassKustomization = "kustomization"

// HealthStatus is the result of a HealthCheck.
type HealthStatus string

const (
	// HealthStatusHealthy means that the checked object works.
	HealthStatusHealthy HealthStatus = "Healthy"
	// HealthStatusUnhealthy means that the checked object has failed.
	HealthStatusUnhealthy HealthStatus = "Unhealthy"
	// HealthStatusPending means that the result is not known yet.
	HealthStatusPending HealthStatus = "Pending"
)

// HealthCheckSpec defines what a HealthCheck is about, and which controller evaluates it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.prometheus) || has(self.class) && self.class == 'prometheus'",message="spec.prometheus needs the class prometheus"
// +kubebuilder:validation:XValidation:rule="!has(self.http) || has(self.class) && self.class == 'http'",message="spec.http needs the class http"
// +kubebuilder:validation:XValidation:rule="!has(self.job) || has(self.class) && self.class == 'job'",message="spec.job needs the class job"
// +kubebuilder:validation:XValidation:rule="!has(self.job) || !has(self.interval) && !has(self.successThreshold)",message="the class job has no interval and no successThreshold: its Job runs once per promotion"
// +kubebuilder:validation:XValidation:rule="!has(self.object) || has(self.class) && self.class == 'object'",message="spec.object needs the class object"
type HealthCheckSpec struct {
	// class defines which controller evaluates the HealthCheck. This controller evaluates
	// the class "kustomization", and the classes "prometheus", "http", "job" and "object" if
	// the field of the same name is set. It does not evaluate HealthChecks of any other
	// class, or without a class: other controllers write their status.
	// +optional
	Class *string `json:"class,omitempty"`

	// accessFrom allows Rollouts of other namespaces to select the HealthCheck. These
	// Rollouts also reset it: its status is then Pending until its controller writes it
	// again. Rollouts of its own namespace need no permission.
	// +optional
	AccessFrom *AccessFrom `json:"accessFrom,omitempty"`

	MeasuringSpec `json:",inline"`

	// prometheus is the query of the class prometheus.
	// +optional
	Prometheus *PrometheusSpec `json:"prometheus,omitempty"`

	// http is the request of the class http.
	// +optional
	HTTP *HTTPSpec `json:"http,omitempty"`

	// job is the CronJob of the class job.
	// +optional
	Job *JobSpec `json:"job,omitempty"`

	// object names the objects of the class object.
	// +optional
	Object *ObjectSpec `json:"object,omitempty"`
}

// HealthCheckStatus is written by the controller of the HealthCheck's class. It is reset
// to Pending when a release has been applied.
type HealthCheckStatus struct {
	// status is Healthy, Unhealthy or Pending.
	// +optional
	Status HealthStatus `json:"status,omitempty"`

	// lastErrorTime is when the check last saw an error.
	// +optional
	LastErrorTime *metav1.Time `json:"lastErrorTime,omitempty"`

	// message describes what was observed.
	// +optional
	Message *string `json:"message,omitempty"`

	// lastChangeTime is when status last changed.
	// +optional
	LastChangeTime *metav1.Time `json:"lastChangeTime,omitempty"`
	// lastHandledReconcileAt is the reconcile.fluxcd.io/requestedAt token that was
	// handled last. Only the class kustomization handles such requests.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	MeasuringStatus `json:",inline"`
}

// HealthCheck reports whether something that a release changed works.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=fluxcd;fluxcd-rollouts
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.class`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
type HealthCheck struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec defines which controller evaluates the check.
	// +optional
	Spec HealthCheckSpec `json:"spec,omitempty"`
	// status is the result of the check.
	// +optional
	Status HealthCheckStatus `json:"status,omitempty"`
}

// HealthCheckList is a list of HealthChecks.
//
// +kubebuilder:object:root=true
type HealthCheckList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []HealthCheck `json:"items"`
}

// IsMeasured reports whether the HealthCheck is of a class that is measured: it names the
// class, and has the field of that name.
func (h *HealthCheck) IsMeasured() bool {
	switch {
	case h.IsClass(HealthCheckClassPrometheus):
		return h.Spec.Prometheus != nil
	case h.IsClass(HealthCheckClassHTTP):
		return h.Spec.HTTP != nil
	case h.IsClass(HealthCheckClassJob):
		return h.Spec.Job != nil
	case h.IsClass(HealthCheckClassObject):
		return h.Spec.Object != nil
	}
	return false
}

// IsEnforced reports whether a bad result of the HealthCheck counts.
func (h *HealthCheck) IsEnforced() bool { return h.Spec.Enforce == nil || *h.Spec.Enforce }

// IsClass reports whether the HealthCheck is of the given class.
func (h *HealthCheck) IsClass(class string) bool {
	return h.Spec.Class != nil && *h.Spec.Class == class
}
