// SPDX-License-Identifier: Apache-2.0

// Package prometheus measures HealthChecks of the class prometheus: it sends a query, and
// lets a condition judge the number.
//
//   - measure.go: one measurement
//   - question.go: what is asked, and for which time
//   - ask.go: sends it
//   - complete.go: asks for no partial answers
//   - clock.go: whether Prometheus has the same time
//   - data.go: the number in an answer
//   - fault.go: why there is no answer, in our words
package prometheus

import (
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/measure"
	"github.com/fluxrollouts/rollout-controller/internal/health/probe"
)

// Condition judges the number of an answer. The baseline is nil if there is none. The text
// of its error is shown only if it is a probe.Fault.
type Condition func(value float64, baseline *float64) (good bool, err error)

// Judge returns the outcome of an answer, or of the error in place of it. The value is nil
// if the answer has no number.
func Judge(value *float64, err error, baseline *float64, condition Condition) health.Outcome {
	if err != nil {
		return probe.Failed(err)
	}
	if value == nil {
		return health.NoData("", "the query returns no number")
	}
	outcome := judge(*value, baseline, condition)
	outcome.Value = measure.Number(*value)
	if baseline != nil {
		outcome.Baseline = measure.Number(*baseline)
	}
	return outcome
}

func judge(value float64, baseline *float64, condition Condition) health.Outcome {
	good, err := condition(value, baseline)
	if err != nil {
		return probe.Failed(probe.ConditionFailed(err))
	}
	return health.Judged(good, "", "")
}
