// SPDX-License-Identifier: Apache-2.0

// Package measured describes a HealthCheck that is measured, for people: the numbers in its
// status, and when it is measured next. It knows only what the objects contain.
package measured

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/activity"
	"github.com/fluxrollouts/rollout-controller/internal/health/condition"
	"github.com/fluxrollouts/rollout-controller/internal/health/measure"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
)

// Check is a HealthCheck that is measured.
type Check struct {
	// Namespace and Name of the HealthCheck.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Class is prometheus, http, job or object.
	Class string `json:"class"`
	// Subject is what is asked: a URL, or the kind and name of objects; empty for Prometheus,
	// which has a query.
	Subject string `json:"subject,omitempty"`
	// Condition is what a good measurement fulfils; empty if the class has its own idea of
	// good.
	Condition string `json:"condition,omitempty"`
	// Status is Healthy, Unhealthy or Pending; empty before the first look.
	Status v1alpha1.HealthStatus `json:"status,omitempty"`
	// Message says why.
	Message string `json:"message,omitempty"`
	// Problem is why it cannot be measured as it is; empty if it can.
	Problem string `json:"problem,omitempty"`
	// Version is the tag of the release that the status is about; empty if that is not known.
	Version string `json:"version,omitempty"`
	// Query is what Prometheus was asked last.
	Query string `json:"query,omitempty"`
	// Good and Bad are how many measurements since the reset were good and bad.
	Good int32 `json:"good,omitempty"`
	Bad  int32 `json:"bad,omitempty"`
	// Measurements are those in the status, the newest first. The status may lack the ones
	// of the last minute.
	Measurements []v1alpha1.Measurement `json:"measurements,omitempty"`
	// Note is what is odd about its spec, and what follows; empty if nothing is.
	Note string `json:"note,omitempty"`
	// Next is when it is measured next, as far as the measurements in the status show it. It
	// is absent if only a change leads to another measurement, and may be past.
	Next *metav1.Time `json:"next,omitempty"`
	// Plan says why it is measured, or why not. It follows the name of the HealthCheck.
	Plan string `json:"plan"`
}

// Of describes the measured ones among HealthChecks that a Rollout selects, in their order.
func Of(rollout *v1alpha1.Rollout, checks []v1alpha1.HealthCheck) []Check {
	var all []Check
	for i := range checks {
		if checks[i].IsMeasured() {
			all = append(all, One(rollout, &checks[i]))
		}
	}
	return all
}

// One describes a HealthCheck that is measured and that a Rollout selects.
func One(rollout *v1alpha1.Rollout, check *v1alpha1.HealthCheck) Check {
	s := check.Status.DeepCopy()
	c := Check{
		Namespace: check.Namespace, Name: check.Name, Class: *check.Spec.Class, Subject: subjectOf(&check.Spec), Condition: conditionOf(&check.Spec),
		Status: s.Status, Message: ptr.Deref(s.Message, ""), Problem: s.Problem, Query: s.Query, Good: s.Good, Bad: s.Bad, Measurements: s.Measurements,
	}
	if s.Release != nil {
		c.Version = s.Release.Tag
	}
	in := inputOf(rollout, check)
	c.Note = in.Spec.Overlaps()
	next := activity.Decide(in)
	if c.Plan = next.Reason; !next.At.IsZero() {
		c.Next = &metav1.Time{Time: next.At.UTC()}
	}
	if c.Next == nil && c.Problem == "" && isForOthers(rollout, check) {
		c.Plan = "is not measured for this Rollout, whose promotion does not depend on it. Other Rollouts have reset it as well"
	}
	return c
}

// subjectOf returns what is asked.
func subjectOf(spec *v1alpha1.HealthCheckSpec) string {
	switch {
	case spec.HTTP != nil && spec.HTTP.Service != nil:
		return "Service " + spec.HTTP.Service.Name
	case spec.HTTP != nil:
		return spec.HTTP.URL
	case spec.Job != nil:
		return "CronJob " + spec.Job.CronJobRef.Name
	case spec.Object != nil && spec.Object.Name == "":
		return spec.Object.Kind + " by its labels"
	case spec.Object != nil:
		return spec.Object.Kind + " " + spec.Object.Name
	}
	return ""
}

// conditionOf returns what a good measurement fulfils.
func conditionOf(spec *v1alpha1.HealthCheckSpec) string {
	switch {
	case spec.Prometheus != nil:
		return spec.Prometheus.Condition
	case spec.HTTP != nil && spec.HTTP.Condition == "":
		return condition.DefaultHTTP
	case spec.HTTP != nil:
		return spec.HTTP.Condition
	case spec.Object != nil:
		return spec.Object.Current
	}
	return ""
}

// isForOthers reports whether only other Rollouts than this one can depend on a
// HealthCheck now: they have reset it, too.
func isForOthers(rollout *v1alpha1.Rollout, check *v1alpha1.HealthCheck) bool {
	isOther := func(uid types.UID) bool { return uid != rollout.UID }
	return !evidence.Awaits(rollout, check) && slices.ContainsFunc(evidence.ResetBy(check), isOther)
}

// inputOf returns what decides about the next measurement, from the status alone. The
// controller knows measurements that are not in the status yet.
func inputOf(rollout *v1alpha1.Rollout, check *v1alpha1.HealthCheck) activity.Input {
	in := activity.Input{
		UID: check.UID, Spec: measure.SpecOf(check), Found: isFound(&check.Status), Status: check.Status.Status,
		Promotion: activity.None, Reset: resetOf(&check.Status), Known: check.CreationTimestamp.Time,
	}
	if check.Status.Problem != "" && !in.Found {
		in.Problem = check.Status.Problem
	}
	if evidence.Awaits(rollout, check) {
		in.Promotion = activity.Running
	}
	in.Ended = check.Status.Good > 0 || int(check.Status.Bad) >= in.Spec.FailureThreshold
	if len(check.Status.Measurements) > 0 {
		in.Last = check.Status.Measurements[0].At.Time
	}
	return in
}

// isFound reports whether the problem is one that the newest measurement has found. Such a
// problem may end without a change of the spec.
func isFound(s *v1alpha1.HealthCheckStatus) bool {
	return s.Reason == v1alpha1.MeasuringProblemFound
}

// resetOf returns when a HealthCheck was reset, as far as a status without measurements
// shows it.
func resetOf(s *v1alpha1.HealthCheckStatus) time.Time {
	if s.LastChangeTime == nil {
		return time.Time{}
	}
	return s.LastChangeTime.Time
}
