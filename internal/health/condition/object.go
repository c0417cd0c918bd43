// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"context"
	"fmt"
)

// objectDialect declares no variables: each top-level field of an object is one.
var objectDialect = func() *dialect {
	d := newDialect()
	d.untyped = true
	return d
}()

// Object compiles an expression about a Kubernetes object, as in healthCheckExprs of a Flux
// Kustomization. As there, types are only checked when the expression is evaluated: the
// fields of objects are not known. An error is a problem of the HealthCheck: it begins with
// the name of the field.
func Object(field, source string) (*Expression, error) {
	if _, err := objectDialect.compile(source); err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return &Expression{source: source, dialect: objectDialect}, nil
}

// Allowance is the work that several plans, and their evaluations for several objects, may
// take together. It is not safe for concurrent use.
type Allowance struct{ left int }

// NewAllowance returns the work that some evaluations may take at most.
func NewAllowance(evaluations int) *Allowance { return &Allowance{evaluations * work} }

// Plan is an expression for several objects. It is planned once, because planning may
// take longer than an evaluation. It is not safe for concurrent use.
type Plan struct {
	*plan
	allowance *Allowance
}

// Plan plans the expression.
func (e *Expression) Plan(allowance *Allowance) (*Plan, error) {
	p, err := e.plan()
	if err != nil {
		return nil, err
	}
	allowance.left -= p.nodes
	return &Plan{p, allowance}, nil
}

// Holds reports whether the condition is true of an object. An error means that this is
// not known. It contains no text of the object.
func (p *Plan) Holds(ctx context.Context, object map[string]any) (bool, error) {
	if p.allowance.left < 0 {
		return false, tooExpensive
	}
	before := min(work, p.allowance.left)
	p.budget.left = before
	result, err := p.run(ctx, object)
	p.allowance.left -= before - max(0, p.budget.left)
	if err != nil {
		return false, err
	}
	return asTruth(result)
}
