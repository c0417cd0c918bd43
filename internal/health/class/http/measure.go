// SPDX-License-Identifier: Apache-2.0

// Package http measures HealthChecks of the class http: it sends a request, and lets a
// condition judge the response.
//
//   - measure.go: one measurement
//   - request.go: the request and its response
package http

import (
	"fmt"
	"net/http"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/measure"
	"github.com/fluxrollouts/rollout-controller/internal/health/probe"
)

// Condition judges a response. The text of its error is shown only if it is a probe.Fault:
// others may quote the response.
type Condition func(Response) (good bool, err error)

// Judge returns the outcome of a response, or of the error in place of it: that of Do, or
// that of finding the target. The policy decides what it means that nobody answers. The
// value is the latency in milliseconds.
func Judge(response Response, err error, condition Condition, unreachable v1alpha1.UnreachablePolicy) health.Outcome {
	if err != nil {
		return unanswered(err, unreachable)
	}
	good, err := condition(response)
	if err != nil {
		return probe.Failed(probe.ConditionFailed(err))
	}
	latency := float64(response.Latency.Microseconds()) / 1000
	return health.Judged(good, measure.Number(latency), status(response.Status))
}

func unanswered(err error, policy v1alpha1.UnreachablePolicy) health.Outcome {
	if policy == v1alpha1.UnreachablePending || !probe.IsUnreachable(err) {
		return probe.Failed(err)
	}
	return health.Bad("", probe.Cause(err))
}

// status returns a status code with its name in Go. The server's own text is not shown.
func status(code int) string {
	if name := http.StatusText(code); name != "" {
		return fmt.Sprintf("status %d %s", code, name)
	}
	return fmt.Sprintf("status %d", code)
}
