// SPDX-License-Identifier: Apache-2.0

// Package probe sends the requests of HealthChecks. It contains what the classes
// prometheus and http have in common. Nothing that a server writes reaches an outcome,
// except numbers: a HealthCheck must not become a way to read what its author may not.
//
//   - outcome.go: the result of one measurement
//   - session.go: the connection of one measurement
//   - body.go: limits of what is read
//   - headers.go: headers that a HealthCheck may set
//   - credentials.go: the Secrets of a HealthCheck
//   - cause.go: why a request failed, in our words
package probe

import (
	"errors"
	"fmt"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// longestMessage is the limit of the API for the message of a measurement, in characters.
const longestMessage = 128

// Outcome is the result of one measurement.
type Outcome struct {
	// Result says whether something was observed, and whether it is good.
	Result v1alpha1.MeasurementResult
	// Value is what was measured. It is nil if that is not one number.
	Value *float64
	// Baseline is what the value was compared with. It is nil if there is none.
	Baseline *float64
	// Message explains the result, with at most 128 characters.
	Message string
}

// Judged returns the outcome of a condition.
func Judged(good bool) Outcome {
	if good {
		return Outcome{Result: v1alpha1.MeasurementGood}
	}
	return Outcome{Result: v1alpha1.MeasurementBad}
}

// Failed returns the outcome of an error: nothing was observed.
func Failed(err error) Outcome {
	return Outcome{Result: v1alpha1.MeasurementError}.Saying(Cause(err))
}

// Saying returns the outcome with a message, which is cut to its limit.
func (o Outcome) Saying(message string) Outcome {
	o.Message = truncate.Text(message, longestMessage-1) // an ellipsis may follow
	return o
}

// ConditionFailed returns what may be shown of the error of a condition. Only the text of
// a Fault may: that of other errors may quote what the condition was applied to.
func ConditionFailed(err error) error {
	var fault Fault
	if errors.As(err, &fault) {
		return fault
	}
	return fmt.Errorf("%w: %w", errCondition, err)
}

// errCondition is shown in place of errors that may quote a response.
const errCondition = Fault("the condition cannot be evaluated for this response: use has() for fields that may be missing")
