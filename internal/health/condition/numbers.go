// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// withDoubles says what to write if a call has whole numbers as arguments, and its types fit
// with doubles in place of them; empty if they do not. CEL compares both kinds of numbers,
// but does not calculate with both.
func withDoubles(env *cel.Env, parsed *cel.Ast, source string, call int64) string {
	numbers := wholeNumbers(parsed.NativeRep(), []rune(source), call)
	if len(numbers) == 0 {
		return ""
	}
	tried, issues := env.Parse(asDoubles(source, numbers))
	if issues.Err() != nil {
		return ""
	}
	if _, issues = env.Check(tried); issues.Err() != nil && issues.Errors()[0].ExprID == call {
		return ""
	}
	var all []string
	for _, n := range numbers {
		all = append(all, n.double())
	}
	return "write " + strings.Join(all, " and ")
}

// wholeNumber is a whole number in a source, as it is written.
type wholeNumber struct {
	at   int // in characters
	text string
}

func (n wholeNumber) double() string { return n.text + ".0" }

// wholeNumbers returns the arguments of a call that are whole numbers, in their order.
func wholeNumbers(tree *ast.AST, source []rune, call int64) []wholeNumber {
	var all []wholeNumber
	ast.PostOrderVisit(tree.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.ID() != call || e.Kind() != ast.CallKind {
			return
		}
		for _, argument := range e.AsCall().Args() {
			if n, ok := wholeNumberOf(tree, source, argument); ok {
				all = append(all, n)
			}
		}
	}))
	slices.SortFunc(all, func(a, b wholeNumber) int { return a.at - b.at })
	return all
}

func wholeNumberOf(tree *ast.AST, source []rune, e ast.Expr) (n wholeNumber, ok bool) {
	if e.Kind() != ast.LiteralKind {
		return n, false
	}
	value, isWhole := e.AsLiteral().(types.Int)
	at, known := tree.SourceInfo().GetOffsetRange(e.ID())
	if !isWhole || !known {
		return n, false
	}
	n = wholeNumber{int(at.Start), strconv.FormatInt(int64(value), 10)}
	return n, strings.HasPrefix(string(source[min(n.at, len(source)):]), n.text)
}

// asDoubles returns a source with doubles in place of some whole numbers.
func asDoubles(source string, numbers []wholeNumber) string {
	runes := []rune(source)
	for _, n := range slices.Backward(numbers) {
		runes = slices.Replace(runes, n.at, n.at+len(n.text), []rune(n.double())...)
	}
	return string(runes)
}
