// SPDX-License-Identifier: Apache-2.0

// Package health computes the status of HealthChecks: the package of a class looks at the
// cluster, and Next turns its result into the status of the HealthCheck.
package health

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Finding is the result of one look. The result may be another one for a HealthCheck that
// was Healthy.
type Finding struct {
	WasHealthy, WasNot Result
}

// ForAll returns a finding that has the same result for every HealthCheck.
func ForAll(result Result) Finding { return Finding{result, result} }

// For returns the result for a HealthCheck of the given status.
func (f Finding) For(status v1alpha1.HealthStatus) Result {
	if status == v1alpha1.HealthStatusHealthy {
		return f.WasHealthy
	}
	return f.WasNot
}

// Result is the result of one evaluation. Create it with Healthy, Unhealthy or Pending;
// the remaining fields control when to look again.
type Result struct {
	// Status is the verdict.
	Status v1alpha1.HealthStatus
	// Message explains the verdict in a sentence.
	Message string
	// Reason is NotStarted if what is missing was not started, and nothing that has run has
	// failed; empty otherwise.
	Reason v1alpha1.MeasuringReason
	// ErrorTime is when the newest failure began. It is zero when the cluster does not
	// report it, and has no meaning unless the status is Unhealthy.
	ErrorTime time.Time

	// Kinds are the kinds of the objects whose change may change the verdict.
	Kinds []schema.GroupVersionResource
	// Basis identifies the state of the evaluated source. It distinguishes an event that
	// brings a change from one that does not.
	Basis string
	// RecheckAt is when time alone may change the verdict; zero means never.
	RecheckAt time.Time
	// Err is the error of a failed read. It requires another evaluation.
	Err error
}

// LogValues returns the result as keys and values for a log line.
func (r Result) LogValues() []any {
	return []any{"action", "Evaluate", "reason", string(r.Status), "message", bounded(r.Message)}
}

// Healthy returns the verdict that everything works.
func Healthy(message string) Result {
	return Result{Status: v1alpha1.HealthStatusHealthy, Message: message}
}

// Unhealthy returns the verdict that something has failed, and since when. A zero time
// stands for a failure whose time the cluster does not report.
func Unhealthy(message string, since time.Time) Result {
	return Result{Status: v1alpha1.HealthStatusUnhealthy, Message: message, ErrorTime: since}
}

// Pending returns the verdict that the health is not known yet.
func Pending(message string) Result {
	return Result{Status: v1alpha1.HealthStatusPending, Message: message}
}
