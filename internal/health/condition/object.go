// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"context"
	"fmt"
	"unicode/utf8"
)

// objectDialect declares no variables: each top-level field of an object is one.
var objectDialect = newDialect()

// Object compiles an expression about a Kubernetes object, as in healthCheckExprs of a Flux
// Kustomization. As there, types are only checked when the expression is evaluated: the
// fields of objects are not known. An error is a problem of the HealthCheck: it begins with
// the name of the field.
func Object(field, source string) (*Expression, error) {
	if n := utf8.RuneCountInString(source); n > Longest {
		return nil, fmt.Errorf("%s: it has %d characters, and may have %d", field, n, Longest)
	}
	parsed, issues := objectDialect.env().Parse(source)
	if issues.Err() != nil {
		return nil, fmt.Errorf("%s: %w", field, firstOf(issues))
	}
	return &Expression{source: source, dialect: objectDialect, checked: parsed, uses: identifiers(parsed)}, nil
}

// Allowance is the work that the evaluations for several objects may take together. It is
// not safe for concurrent use.
type Allowance struct{ left int }

// NewAllowance returns the work that some evaluations may take at most.
func NewAllowance(evaluations int) *Allowance { return &Allowance{evaluations * work} }

// HoldsFor reports whether the condition is true of an object. An error means that this is
// not known. It contains no text of the object.
func (e *Expression) HoldsFor(ctx context.Context, object map[string]any, allowance *Allowance) (bool, error) {
	budget := newBudget(e.dialect.functions())
	budget.left = min(budget.left, allowance.left)
	before := budget.left
	result, err := e.run(ctx, object, budget)
	allowance.left -= before - max(0, budget.left)
	if err != nil {
		return false, err
	}
	return asTruth(result)
}
