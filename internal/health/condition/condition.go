// SPDX-License-Identifier: Apache-2.0

// Package condition evaluates the CEL expressions of HealthChecks, in the dialect of
// Flux's healthCheckExprs: the standard library, optional values, and the extensions
// strings, sets and encoders.
//
//	condition.go    compiles an expression, and evaluates it
//	environment.go  the dialect, and the variables of each class
//	prometheus.go   the values of the variables of the class prometheus
//	http.go         the values of the variables of the class http
//	numbers.go      what to write in place of a whole number
//	object.go       expressions about an object, and the work for several objects
//	budget.go       the limit of the work of one evaluation
//	words.go        what is wrong with an expression, without text of others
//
// Tenants write the expressions, and all tenants share the process. So the sizes of an
// expression and of its variables are bounded, and the work of an evaluation is, too.
package condition

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
)

const (
	// Longest is how many characters an expression may have.
	Longest = 2048
	// mostNodes is how many values, fields and calls an expression may consist of, once its
	// macros are expanded. Memory and time to compile it depend on them.
	mostNodes = 500
	// deepest is how many lists, maps, optional values and macros may contain each other.
	// The time to check their types grows with the fourth power of it: 25 take 20 ms, and
	// 240 take 17 s.
	deepest = 25
	// interruptFrequency is after how many iterations the deadline is checked, as in
	// Flux and Kubernetes.
	interruptFrequency = 100
)

// deadline is how long one evaluation may take. Tests that count work do not depend on it.
var deadline = 100 * time.Millisecond

// DefaultHTTP is the condition of the class http if the HealthCheck has none.
const DefaultHTTP = "status >= 200 && status < 300"

// Expression is an expression that can be compiled. It can be evaluated by several
// goroutines at a time.
//
// It does not contain what was compiled, which needs a hundred times the memory of the
// source: most HealthChecks are not being measured, and compiling takes about a
// millisecond.
type Expression struct {
	source      string
	dialect     *dialect
	usesRelease bool
}

// Prometheus compiles spec.prometheus.condition. An error is a problem of the HealthCheck:
// it begins with the name of the field.
func Prometheus(source string) (*Expression, error) {
	return compile(prometheusDialect, "spec.prometheus.condition", source)
}

// HTTP compiles spec.http.condition; DefaultHTTP takes the place of an empty one. An error
// is a problem of the HealthCheck: it begins with the name of the field.
func HTTP(source string) (*Expression, error) {
	if source == "" {
		source = DefaultHTTP
	}
	return compile(httpDialect, "spec.http.condition", source)
}

func compile(dialect *dialect, field, source string) (*Expression, error) {
	if source == "" {
		return nil, fmt.Errorf("%s: it is empty", field)
	}
	checked, err := dialect.compile(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	// A value of a JSON document has no type when the expression is compiled, and is checked
	// when it is evaluated.
	if got := checked.OutputType(); !got.IsExactType(cel.BoolType) && !got.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("%s: its result is %s, and must be true or false", field, got)
	}
	if name := unknownReleaseField(checked); name != "" {
		return nil, fmt.Errorf("%s: release has no field %q: use tag, digest, version or revision", field, name)
	}
	return &Expression{source, dialect, usesRelease(checked)}, nil
}

// compile parses an expression, and checks its types if the dialect has types.
func (d *dialect) compile(source string) (*cel.Ast, error) {
	parsed, err := parse(d.env(), source)
	if err != nil || d.untyped {
		return parsed, err
	}
	return check(d.env(), parsed, source)
}

func parse(env *cel.Env, source string) (*cel.Ast, error) {
	if n := utf8.RuneCountInString(source); n > Longest {
		return nil, refusal(fmt.Sprintf("it has %d characters, and may have %d", n, Longest))
	}
	parsed, issues := env.Parse(source)
	if issues.Err() != nil {
		return nil, firstOf(issues)
	}
	if n := nodes(parsed); n > mostNodes {
		return nil, refusal(fmt.Sprintf("it has %d values, fields and calls, with those of its macros, and may have %d: use a simpler expression", n, mostNodes))
	}
	return parsed, nil
}

func nodes(compiled *cel.Ast) int {
	n := 0
	visit(compiled, func(ast.Expr) { n++ })
	return n
}

// check checks the types.
func check(env *cel.Env, parsed *cel.Ast, source string) (*cel.Ast, error) {
	if depth(ast.NavigateAST(parsed.NativeRep())) > deepest {
		return nil, refusal(fmt.Sprintf("its lists, maps and macros contain each other more than %d times", deepest))
	}
	checked, issues := env.Check(parsed)
	if issues.Err() == nil {
		return checked, nil
	}
	err := firstOf(issues)
	if remedy := withDoubles(env, parsed, source, issues.Errors()[0].ExprID); remedy != "" {
		err = refusal(err.Error() + ": " + remedy)
	}
	return nil, err
}

// depth returns how many nodes contain each other that add to the type of a value.
func depth(node ast.NavigableExpr) int {
	most := 0
	for _, child := range node.Children() {
		most = max(most, depth(child))
	}
	switch kind := node.Kind(); {
	case kind == ast.ListKind, kind == ast.MapKind, kind == ast.StructKind, kind == ast.ComprehensionKind,
		kind == ast.CallKind && strings.HasPrefix(node.AsCall().FunctionName(), "of"): // optional.of
		most++
	}
	return most
}

// String returns the source of the expression.
func (e *Expression) String() string { return e.source }

// UsesRelease reports whether the result depends on which release is measured, or on what
// was measured before the promotion.
func (e *Expression) UsesRelease() bool { return e.usesRelease }

// Variables are the values of the variables of a class: a Sample or a Response.
type Variables interface {
	// values returns the variables by name, or an error if they are too large.
	values() (map[string]any, error)
}

// Holds reports whether the condition is true. An error means that this is not known. It
// contains no text of another server.
func (e *Expression) Holds(ctx context.Context, in Variables) (bool, error) {
	result, err := e.evaluate(ctx, in)
	if err != nil {
		return false, err
	}
	return asTruth(result)
}

func asTruth(result any) (bool, error) {
	holds, ok := result.(bool)
	if !ok {
		return false, errors.New("the result is not true or false")
	}
	return holds, nil
}

func (e *Expression) evaluate(ctx context.Context, in Variables) (any, error) {
	values, err := in.values()
	if err != nil {
		return nil, err
	}
	p, err := e.plan()
	if err != nil {
		return nil, err
	}
	p.budget.left -= p.nodes
	return p.run(ctx, values)
}

// plan is an expression that is ready to be evaluated, by one goroutine at a time.
type plan struct {
	program cel.Program
	budget  *budget // what the next evaluation may take
	nodes   int     // what planning has taken
	source  *Expression
}

func (e *Expression) plan() (*plan, error) {
	compiled, err := e.dialect.compile(e.source)
	if err != nil {
		return nil, err
	}
	p := &plan{budget: newBudget(e.dialect.functions()), nodes: nodes(compiled), source: e}
	p.program, err = e.dialect.env().Program(compiled,
		cel.CustomDecorator(p.budget.decorate), cel.InterruptCheckFrequency(interruptFrequency))
	if err != nil {
		return nil, refusal("it cannot be planned")
	}
	return p, nil
}

func (p *plan) run(ctx context.Context, values map[string]any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	result, _, err := p.program.ContextEval(ctx, values)
	if err != nil {
		return nil, p.source.inWords(err)
	}
	return result.Value(), nil
}

func usesRelease(checked *cel.Ast) bool {
	uses := false
	visit(checked, func(e ast.Expr) {
		if e.Kind() == ast.IdentKind {
			uses = uses || e.AsIdent() == "release" || e.AsIdent() == "baseline"
		}
	})
	return uses
}

// unknownReleaseField returns a field of release that does not exist; empty if there is
// none.
func unknownReleaseField(checked *cel.Ast) (unknown string) {
	visit(checked, func(e ast.Expr) {
		if e.Kind() != ast.SelectKind {
			return
		}
		field := e.AsSelect()
		of := field.Operand()
		if of.Kind() == ast.IdentKind && of.AsIdent() == "release" && !releaseFields[field.FieldName()] {
			unknown = field.FieldName()
		}
	})
	return unknown
}

func visit(checked *cel.Ast, do func(ast.Expr)) {
	ast.PostOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(do))
}
