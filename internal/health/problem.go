// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"fmt"
)

// Problem is why a HealthCheck cannot be measured as it stands: its author or an operator
// has to change something. Any other error of a measurement may go away by itself.
type Problem struct {
	// Text says what is wrong and what to do. It names the field.
	Text string
}

// Error returns the text.
func (p *Problem) Error() string { return p.Text }

// Problemf returns a Problem whose text is formatted.
func Problemf(format string, args ...any) error {
	return &Problem{Text: fmt.Sprintf(format, args...)}
}

// IsProblem returns the Problem in an error, if there is one.
func IsProblem(err error) (*Problem, bool) {
	var problem *Problem
	found := errors.As(err, &problem)
	return problem, found
}
