// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Classes of HealthChecks that are measured: something is queried again and again, and
// several answers in a row make a verdict.
const (
	// HealthCheckClassPrometheus evaluates a Prometheus query.
	HealthCheckClassPrometheus = "prometheus"
	// HealthCheckClassHTTP sends an HTTP request.
	HealthCheckClassHTTP = "http"
	// HealthCheckClassJob runs a Job from a CronJob.
	HealthCheckClassJob = "job"
	// HealthCheckClassObject looks at the status of Kubernetes objects.
	HealthCheckClassObject = "object"
)

// HealthCredentialsLabel, with the value "true", is a label on a Secret that HealthChecks
// of its namespace may send to what they measure.
const HealthCredentialsLabel = "rollout-controller.kuberik.com/health-credentials"

// MeasuringSpec defines when something is measured, and how many measurements make a
// verdict. It applies to the classes prometheus, http, job and object.
type MeasuringSpec struct {
	// enforce defines whether a bad result counts. With false, the HealthCheck is measured
	// and shown, but is Healthy once it was measured; its message says what it would be.
	// The default is true.
	// +optional
	Enforce *bool `json:"enforce,omitempty"`

	// interval is the time from one measurement to the next, from 5s to 1h. The default is
	// 30s. The class job has none: its Job runs once per promotion.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('5s') && duration(self) <= duration('1h')",message="must be from 5s to 1h"
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`

	// timeout is how long one measurement may take, from 1s to 30s. The default is 10s.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('30s')",message="must be from 1s to 30s"
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// delay is the time from the reset of the HealthCheck, when the release has been
	// applied, to the first measurement, at most 1h. The default of the class prometheus
	// is its window, but at least 1m. The default of the class object is the interval, and
	// of the other classes 0s.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('1h')",message="must be at most 1h"
	// +optional
	Delay *metav1.Duration `json:"delay,omitempty"`

	// failureThreshold is how many bad measurements in a row make the HealthCheck
	// Unhealthy. The default is 3, and 1 for the class job. For the class prometheus it is at
	// least window / interval + 1: two of the measurements then see no error in common. For
	// the class job, 2 runs a Job that failed once more.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	FailureThreshold int32 `json:"failureThreshold,omitempty"`

	// successThreshold is how many good measurements in a row make the HealthCheck
	// Healthy. The default is 1. The class job has none: its Job completes once.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	SuccessThreshold int32 `json:"successThreshold,omitempty"`
}

// BaselinePolicy defines what a measurement is compared with.
//
// +kubebuilder:validation:Enum=None;BeforePromotion
type BaselinePolicy string

const (
	// BaselineNone compares with nothing.
	BaselineNone BaselinePolicy = "None"
	// BaselineBeforePromotion compares with the same query for the release that succeeded
	// last, at the moment when it was first left.
	BaselineBeforePromotion BaselinePolicy = "BeforePromotion"
)

// NoDataPolicy defines what an empty answer of Prometheus means.
//
// +kubebuilder:validation:Enum=Pending;Healthy;Unhealthy
type NoDataPolicy string

const (
	// NoDataPending makes an empty answer count for nothing.
	NoDataPending NoDataPolicy = "Pending"
	// NoDataHealthy makes an empty answer a good measurement.
	NoDataHealthy NoDataPolicy = "Healthy"
	// NoDataUnhealthy makes an empty answer a bad measurement.
	NoDataUnhealthy NoDataPolicy = "Unhealthy"
)

// PrometheusSpec is a query whose result a condition judges.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.address) && has(self.service))",message="give either address or service, not both"
type PrometheusSpec struct {
	// address is the URL of Prometheus. The operator must allow it with
	// --health-destinations. Without address and service, --prometheus-address is used.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern="^https?://"
	// +optional
	Address string `json:"address,omitempty"`

	// service is a Service of the same namespace that serves Prometheus.
	// +optional
	Service *ServiceReference `json:"service,omitempty"`

	// query is a PromQL expression. It may contain $(version), $(digest), $(revision),
	// $(rollout), $(namespace), $(window), $(elapsed) and $(since).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Query string `json:"query"`

	// window is the value of $(window), at most 24h. The default is 0s.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern="^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$"
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('24h')",message="must be at most 24h"
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`

	// condition is a CEL expression of type bool. It is true if the measurement is good.
	// Its variables are value, baseline, release and elapsed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +required
	Condition string `json:"condition"`

	// baseline defines what the variable baseline of the condition contains. With
	// BeforePromotion, it is the result of the same query for the newest earlier release
	// that succeeded, at the moment when it was first left. The default is None.
	// +optional
	Baseline BaselinePolicy `json:"baseline,omitempty"`

	// noData defines what an answer without a number means. The default is Pending.
	// +optional
	NoData NoDataPolicy `json:"noData,omitempty"`

	RequestSpec `json:",inline"`
}

// ServiceReference names a port of a Service of the same namespace. The Service must have
// a selector, so that only Pods of the namespace answer.
type ServiceReference struct {
	// name is the name of the Service.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Name string `json:"name"`

	// port is the name or number of the Service's port. It may be left out if the Service
	// has only one.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Port string `json:"port,omitempty"`

	// scheme is http or https. The default is http.
	// +kubebuilder:validation:Enum=http;https
	// +optional
	Scheme string `json:"scheme,omitempty"`

	// path is the path and query of the URL. The default is /. It may contain the same
	// variables as a query.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern="^/"
	// +optional
	Path string `json:"path,omitempty"`
}

// RequestSpec contains what is sent with a request.
type RequestSpec struct {
	// headers are sent with each request. Authorization, Host and Cookie are not allowed.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=name
	// +optional
	Headers []Header `json:"headers,omitempty"`

	// secretRef names a Secret of the same namespace with the key token, or with the keys
	// username and password. It must have the label
	// rollout-controller.kuberik.com/health-credentials: "true".
	// +optional
	SecretRef *ObjectName `json:"secretRef,omitempty"`

	// certSecretRef names a Secret of the same namespace with the keys ca.crt, tls.crt and
	// tls.key, all optional. It needs the same label.
	// +optional
	CertSecretRef *ObjectName `json:"certSecretRef,omitempty"`
}

// Header is a header of an HTTP request.
type Header struct {
	// name is the name of the header.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern="^[A-Za-z0-9-]+$"
	// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['authorization', 'host', 'cookie', 'proxy-authorization', 'content-length', 'transfer-encoding', 'connection'])",message="this header cannot be set: use secretRef for credentials"
	// +required
	Name string `json:"name"`

	// value is the value of the header.
	// +kubebuilder:validation:MaxLength=1024
	// +required
	Value string `json:"value"`
}

// UnreachablePolicy defines what a destination that does not answer means.
//
// +kubebuilder:validation:Enum=Unhealthy;Pending
type UnreachablePolicy string

const (
	// UnreachableUnhealthy makes no answer a bad measurement.
	UnreachableUnhealthy UnreachablePolicy = "Unhealthy"
	// UnreachablePending makes no answer count for nothing.
	UnreachablePending UnreachablePolicy = "Pending"
)

// HTTPSpec is a request whose response a condition judges.
//
// +kubebuilder:validation:XValidation:rule="has(self.url) != has(self.service)",message="give either url or service"
type HTTPSpec struct {
	// url is what is requested. The operator must allow its scheme, host and port with
	// --health-destinations.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern="^https?://"
	// +optional
	URL string `json:"url,omitempty"`

	// service is a Service of the same namespace that is requested.
	// +optional
	Service *ServiceReference `json:"service,omitempty"`

	// method is GET or HEAD. The default is GET.
	// +kubebuilder:validation:Enum=GET;HEAD
	// +optional
	Method string `json:"method,omitempty"`

	// condition is a CEL expression of type bool. It is true if the measurement is good.
	// Its variables are status, body, json, headers, latency, release and elapsed. The
	// default is status >= 200 && status < 300.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Condition string `json:"condition,omitempty"`

	// unreachable defines what it means if the destination refuses the connection, does
	// not answer in time, or has no address. The default is Unhealthy.
	// +optional
	Unreachable UnreachablePolicy `json:"unreachable,omitempty"`

	RequestSpec `json:",inline"`
}

// JobSpec is a CronJob from which a Job is made for each promotion.
type JobSpec struct {
	// cronJobRef names a CronJob of the same namespace. It is usually suspended, so that
	// it runs only for promotions.
	// +required
	CronJobRef ObjectName `json:"cronJobRef"`
}

// ObjectSpec names objects of the same namespace whose status is judged.
//
// +kubebuilder:validation:XValidation:rule="has(self.name) != has(self.selector)",message="give either name or selector"
// +kubebuilder:validation:XValidation:rule="has(self.current) || !(has(self.failed) || has(self.inProgress))",message="current is required with failed or inProgress"
// +kubebuilder:validation:XValidation:rule="!(self.apiVersion == 'v1' && self.kind == 'Secret')",message="Secrets cannot be checked"
type ObjectSpec struct {
	// apiVersion is the API group and version of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	APIVersion string `json:"apiVersion"`

	// kind is the kind of the objects.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// name is the name of one object.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`

	// selector selects objects by label.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// minimum is how many objects there must be, at most 1000. The default is 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Minimum *int32 `json:"minimum,omitempty"`

	// current is a CEL expression that is true if an object has reached its desired state,
	// as in healthCheckExprs of a Flux Kustomization. Without it, the status is computed
	// as kstatus does.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Current string `json:"current,omitempty"`

	// failed is a CEL expression that is true if an object has failed.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	Failed string `json:"failed,omitempty"`

	// inProgress is a CEL expression that is true if an object is not there yet.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	InProgress string `json:"inProgress,omitempty"`
}

// MeasurementResult is what one measurement says.
//
// +kubebuilder:validation:Enum=Good;Bad;NoData;Error
type MeasurementResult string

const (
	// MeasurementGood means that the condition was true.
	MeasurementGood MeasurementResult = "Good"
	// MeasurementBad means that the condition was false.
	MeasurementBad MeasurementResult = "Bad"
	// MeasurementNoData means that there was no number to judge.
	MeasurementNoData MeasurementResult = "NoData"
	// MeasurementError means that nothing could be observed.
	MeasurementError MeasurementResult = "Error"
)

// Measurement is one measurement.
type Measurement struct {
	// at is when it was measured.
	// +required
	At metav1.Time `json:"at"`

	// value is the number that was measured, as text.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Value string `json:"value,omitempty"`

	// baseline is the number that it was compared with, as text.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Baseline string `json:"baseline,omitempty"`

	// result is Good, Bad, NoData or Error.
	// +required
	Result MeasurementResult `json:"result"`

	// message explains the result.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Message string `json:"message,omitempty"`
}

// MeasuredRelease is the release that a verdict is about.
type MeasuredRelease struct {
	// tag is the tag of the release.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Tag string `json:"tag,omitempty"`

	// digest is the digest of the release.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Digest string `json:"digest,omitempty"`
}

// MeasuringReason is why a HealthCheck is not measured, or why its measurements fail.
// +kubebuilder:validation:Enum=NotMeasurable;ProblemFound;OtherInstance;NotStarted;NotObserved
type MeasuringReason string

const (
	// MeasuringNotMeasurable: it cannot be measured as it is, and so it is not.
	MeasuringNotMeasurable MeasuringReason = "NotMeasurable"
	// MeasuringProblemFound: the last measurement found a problem. It may end without a
	// change of the HealthCheck, so measurements continue.
	MeasuringProblemFound MeasuringReason = "ProblemFound"
	// MeasuringOtherInstance: another instance of the controller acts for its Rollout, and
	// only that one knows when to measure.
	MeasuringOtherInstance MeasuringReason = "OtherInstance"
	// HealthNotStarted: nothing that has run has failed. What is missing was not started in
	// time: no node is free, or an image cannot be pulled.
	HealthNotStarted MeasuringReason = "NotStarted"
	// HealthNotObserved: nothing is known to be wrong. Something could not be observed, or
	// Flux is not done.
	HealthNotObserved MeasuringReason = "NotObserved"
)

// MeasuringStatus shows what was measured.
type MeasuringStatus struct {
	// observedGeneration is the generation of the spec that was measured.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// reason is why the HealthCheck is not measured, or why its measurements fail, as one
	// word. It is absent while nothing is in the way.
	// +optional
	Reason MeasuringReason `json:"reason,omitempty"`

	// problem says why the HealthCheck cannot be measured as it is.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Problem string `json:"problem,omitempty"`

	// query is the query as it was last sent, at most 1024 characters of it.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Query string `json:"query,omitempty"`

	// measurements are the last ones, the newest first.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Measurements []Measurement `json:"measurements,omitempty"`

	// good is how many measurements since the reset were good.
	// +optional
	Good int32 `json:"good,omitempty"`

	// bad is how many measurements since the reset were bad. If these are more than a fifth
	// at the end of a bake, and not fewer than failureThreshold, the release fails.
	// +optional
	Bad int32 `json:"bad,omitempty"`

	// release is the release that the status is about. Other programs that write the
	// status may set it too: then a result for another release proves nothing.
	// +optional
	Release *MeasuredRelease `json:"release,omitempty"`
}

// ObjectName names an object of the same namespace.
type ObjectName struct {
	// name is the name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}
