// SPDX-License-Identifier: Apache-2.0

// Package health says what a HealthCheck says: a Checker per class looks at the
// cluster, and Next turns what it saw into the status of the HealthCheck.
package health

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Checker evaluates the HealthChecks of one class. It reads and never writes,
// and what it cannot read is a Pending result and not a failure.
type Checker interface {
	// Subject returns what the HealthCheck is about; or the verdict on one that is about
	// nothing, or about what it may not see.
	Subject(check *v1alpha1.HealthCheck) (types.NamespacedName, *Result)
	// Look looks at a subject once, for all HealthChecks that are about it.
	Look(ctx context.Context, subject types.NamespacedName) Finding
}

// Finding is what one look found. What it says to a HealthCheck that was Healthy may be
// another thing.
type Finding struct {
	WasHealthy, WasNot Result
}

// ForAll is a finding that says the same to all.
func ForAll(result Result) Finding { return Finding{result, result} }

// For returns what the finding says to a HealthCheck of some status.
func (f Finding) For(status v1alpha1.HealthStatus) Result {
	if status == v1alpha1.HealthStatusHealthy {
		return f.WasHealthy
	}
	return f.WasNot
}

// Result is what one evaluation found. Make it with Healthy, Unhealthy or
// Pending; the remaining fields say when to look again.
type Result struct {
	// Status is the verdict.
	Status v1alpha1.HealthStatus
	// Message says in a sentence what the verdict rests on.
	Message string
	// ErrorTime is when the newest failure began. It is zero when the cluster
	// does not say, and without meaning unless the status is Unhealthy.
	ErrorTime time.Time

	// Kinds are those of the objects whose change may change the verdict.
	Kinds []schema.GroupVersionResource
	// Basis identifies the state of the evaluated source, for telling an event
	// that brings news from one that does not.
	Basis string
	// RecheckAt is when time alone may change the verdict; zero means never.
	RecheckAt time.Time
	// Err is what could not be read. It asks for another evaluation.
	Err error
}

// LogValues are the result as keys and values for a line of the log.
func (r Result) LogValues() []any {
	return []any{"action", "Evaluate", "reason", string(r.Status), "message", bounded(r.Message)}
}

// Healthy is the verdict that everything works.
func Healthy(message string) Result {
	return Result{Status: v1alpha1.HealthStatusHealthy, Message: message}
}

// Unhealthy is the verdict that something has failed, and since when. A zero
// time stands for a failure that the cluster does not date.
func Unhealthy(message string, since time.Time) Result {
	return Result{Status: v1alpha1.HealthStatusUnhealthy, Message: message, ErrorTime: since}
}

// Pending is the verdict that nothing can be said yet.
func Pending(message string) Result {
	return Result{Status: v1alpha1.HealthStatusPending, Message: message}
}
