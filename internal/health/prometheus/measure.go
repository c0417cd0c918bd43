// SPDX-License-Identifier: Apache-2.0

// Package prometheus measures HealthChecks of the class prometheus: it sends a query, and
// lets a condition judge the numbers.
//
//   - measure.go: one measurement
//   - question.go: what is asked, and for which time
//   - ask.go: sends it
//   - body.go: bounds the parts of an answer
//   - data.go: the numbers in an answer
//   - fault.go: why there is no answer, in our words
package prometheus

import (
	"fmt"
	"strings"

	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/measure"
	"github.com/fluxrollouts/rollout-controller/internal/health/probe"
)

// Condition judges the numbers of an answer. The baseline is nil if there is none. The
// text of its error is shown only if it is a probe.Fault: others may quote labels.
type Condition func(data Data, baseline *float64) (good bool, err error)

// Judge returns the outcome of an answer, or of the error in place of it. Value is the last
// number if there is one series.
func Judge(data Data, err error, baseline *float64, condition Condition) health.Outcome {
	if err != nil {
		return probe.Failed(err)
	}
	if len(data.Series) == 0 {
		return health.NoData("", "the query returns no number")
	}
	outcome := judge(data, baseline, condition)
	if baseline != nil {
		outcome.Baseline = measure.Number(*baseline)
	}
	if value, ok := data.Value(); ok {
		outcome.Value = measure.Number(value)
	}
	return outcome
}

func judge(data Data, baseline *float64, condition Condition) health.Outcome {
	good, err := condition(data, baseline)
	if err != nil {
		return probe.Failed(probe.ConditionFailed(err))
	}
	return health.Judged(good, "", data.summary())
}

// summary says what one number does not show.
func (d Data) summary() string {
	var parts []string
	if len(d.Series) > 1 {
		parts = append(parts, fmt.Sprintf("%d series", len(d.Series)))
	}
	if d.Warnings > 0 { // whose texts are those of another server
		parts = append(parts, fmt.Sprintf("warnings of Prometheus: %d; run the query there to see them", d.Warnings))
	}
	return strings.Join(parts, "; ")
}
