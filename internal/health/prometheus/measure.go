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

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health/probe"
)

// Condition judges the numbers of an answer. The baseline is nil if there is none. The
// text of its error is shown only if it is a probe.Fault: others may quote labels.
type Condition func(data Data, baseline *float64) (good bool, err error)

// Judge returns the outcome of an answer, or of the error in place of it. Without numbers,
// the policy decides. Value is the last number if there is one series.
func Judge(data Data, err error, baseline *float64, condition Condition, noData v1alpha1.NoDataPolicy) probe.Outcome {
	if err != nil {
		return probe.Failed(err)
	}
	if len(data.Series) == 0 {
		return nothing(noData).Saying("the query returns no number")
	}
	outcome := judge(data, baseline, condition)
	outcome.Baseline = baseline
	if value, ok := data.Value(); ok {
		outcome.Value = &value
	}
	return outcome
}

func judge(data Data, baseline *float64, condition Condition) probe.Outcome {
	good, err := condition(data, baseline)
	if err == nil {
		return probe.Judged(good).Saying(data.summary())
	}
	return probe.Failed(probe.ConditionFailed(err))
}

// nothing returns what an answer without numbers means.
func nothing(policy v1alpha1.NoDataPolicy) probe.Outcome {
	switch policy {
	case v1alpha1.NoDataHealthy:
		return probe.Judged(true)
	case v1alpha1.NoDataUnhealthy:
		return probe.Judged(false)
	case v1alpha1.NoDataPending:
	}
	return probe.Outcome{Result: v1alpha1.MeasurementNoData}
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
