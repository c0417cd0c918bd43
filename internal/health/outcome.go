// SPDX-License-Identifier: Apache-2.0

package health

import "github.com/fluxrollouts/rollout-controller/api/v1alpha1"

// Outcome is the result of one measurement. Create it with Good, Bad, NoData, Unobserved
// or Invalid.
type Outcome struct {
	// Result is what the measurement says.
	Result v1alpha1.MeasurementResult
	// Value is what was measured, as text of at most 64 characters, for example 2/3 or
	// 14s. It may be empty.
	Value string
	// Baseline is what the value was compared with, in the same form; empty if there is
	// none.
	Baseline string
	// Message explains the result. It contains no text of other servers, and of objects
	// only their names and phases, and the termination message of a Job.
	Message string
	// Problem means that the HealthCheck cannot be measured as it is, and is not measured
	// at all; the Result is Error. It is empty otherwise.
	Problem string
}

// Good returns the outcome that what was measured is as it should be.
func Good(value, message string) Outcome {
	return Outcome{Result: v1alpha1.MeasurementGood, Value: value, Message: message}
}

// Bad returns the outcome that what was measured is not as it should be.
func Bad(value, message string) Outcome {
	return Outcome{Result: v1alpha1.MeasurementBad, Value: value, Message: message}
}

// Judged returns Good if what was measured is as it should be, and otherwise Bad.
func Judged(good bool, value, message string) Outcome {
	if good {
		return Good(value, message)
	}
	return Bad(value, message)
}

// NoData returns the outcome that there is nothing to judge yet.
func NoData(value, message string) Outcome {
	return Outcome{Result: v1alpha1.MeasurementNoData, Value: value, Message: message}
}

// Unobserved returns the outcome that it could not be measured now.
func Unobserved(message string) Outcome {
	return Outcome{Result: v1alpha1.MeasurementError, Message: message}
}

// Invalid returns the outcome that it cannot be measured until somebody corrects
// something, which the text names.
func Invalid(text string) Outcome {
	return Outcome{Result: v1alpha1.MeasurementError, Message: text, Problem: text}
}
