// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"regexp"
	"slices"
	"strconv"

	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"

	"github.com/fluxrollouts/rollout-controller/internal/pattern"
)

const (
	// work is how many units of work one evaluation may take. A unit is a value, or
	// textUnit bytes of text, that is created, compared or searched.
	work     = 1_000_000
	textUnit = 16
	// formatted is how many units of text a value may become on average.
	formatted = 8
)

// budget is the work that one evaluation has left.
//
// It takes the place of CEL's cost limit, which does not bound the work. CEL checks its
// limit after each call, and does not look into values. One call may already need
// gigabytes, as body.replace("", body) does. A list that contains one other list twice, and
// so on, costs next to nothing, but takes years to compare. And CEL's accounting itself
// takes longer with each iteration of a macro.
//
// Here, a function pays for its arguments before it is called, and whatever creates a
// value pays for all of its contents. So no value can be larger than the budget.
type budget struct {
	left      int
	functions map[string]*functions.Overload
}

func newBudget(functions map[string]*functions.Overload) *budget {
	return &budget{left: work, functions: functions}
}

// decorate replaces a node of a program by one that pays.
func (b *budget) decorate(node interpreter.Interpretable) (interpreter.Interpretable, error) {
	switch node := node.(type) {
	case paidAttribute:
		return node, nil
	case interpreter.InterpretableAttribute:
		return paidAttribute{node, b}, nil
	case interpreter.InterpretableConstructor:
		return paidConstructor{node, b}, nil
	case interpreter.InterpretableCall:
		if function := b.replacement(node); function != nil {
			return interpreter.NewCall(node.ID(), node.Function(), node.OverloadID(), node.Args(), function), nil
		}
		return paidCall{node, b}, nil
	}
	return node, nil
}

// paidAttribute reads a variable, or a part of one.
type paidAttribute struct {
	interpreter.InterpretableAttribute
	budget *budget
}

func (p paidAttribute) Eval(vars interpreter.Activation) ref.Val {
	p.budget.consume(1)
	return p.InterpretableAttribute.Eval(vars)
}

// paidConstructor creates a list, map or message.
type paidConstructor struct {
	interpreter.InterpretableConstructor
	budget *budget
}

func (p paidConstructor) Eval(vars interpreter.Activation) ref.Val {
	return p.budget.payResult(p.InterpretableConstructor.Eval(vars))
}

// paidCall is a call whose work is proportional to its result.
type paidCall struct {
	interpreter.InterpretableCall
	budget *budget
}

func (p paidCall) Eval(vars interpreter.Activation) ref.Val {
	return p.budget.payResult(p.InterpretableCall.Eval(vars))
}

func (b *budget) payResult(result ref.Val) ref.Val {
	b.payFor(result)
	return result
}

// replacement returns the implementation of a call that pays before the call; nil if the
// call may be made as it is.
func (b *budget) replacement(call interpreter.InterpretableCall) functions.FunctionOp {
	switch name := call.Function(); {
	case name == operators.Equals:
		return b.equal
	case name == operators.NotEquals:
		return func(args ...ref.Val) ref.Val { return types.Bool(b.equal(args...) != types.True) }
	case name == operators.Add:
		return b.add
	case name == operators.In, name == overloads.Matches, slices.Contains(extensionFunctions(), name):
		return b.prepaid(call)
	}
	return nil
}

func (b *budget) equal(args ...ref.Val) ref.Val {
	b.payFor(args...)
	return types.Equal(args[0], args[1])
}

// add copies lists. CEL only links them, and then any access takes longer.
func (b *budget) add(args ...ref.Val) ref.Val {
	if result, ok := args[0].(traits.MutableLister); ok { // the result of a macro
		b.payFor(args[1])
		return result.Add(args[1])
	}
	b.payFor(args...)
	left, ok := args[0].(traits.Lister)
	right, both := args[1].(traits.Lister)
	if ok && both {
		return types.NewRefValList(types.DefaultTypeAdapter, append(elements(left), elements(right)...))
	}
	return invoke(b.functions[operators.Add], args)
}

// prepaid pays for the arguments, for what the function makes of them, and for the result.
func (b *budget) prepaid(call interpreter.InterpretableCall) functions.FunctionOp {
	function := b.functions[call.OverloadID()]
	if function == nil {
		function = b.functions[call.Function()]
	}
	extra := surcharges[call.Function()]
	return func(args ...ref.Val) ref.Val {
		before := b.left
		b.payFor(args...)
		if extra != nil {
			b.consume(extra(args, before-b.left))
		}
		return b.payResult(invoke(function, args))
	}
}

// surcharges are the units that a function takes in addition to those of its arguments,
// which are given.
var surcharges = map[string]func(args []ref.Val, units int) int{
	"replace":         replaced,
	"join":            joined,
	"split":           func(args []ref.Val, _ int) int { return length(args[0]) / 4 },
	"format":          formattedBy,
	"indexOf":         searched,
	"lastIndexOf":     searched,
	"sets.contains":   crossed,
	"sets.equivalent": crossed,
	"sets.intersects": crossed,
	overloads.Matches: matched,
	"strings.quote":   func(_ []ref.Val, units int) int { return units },
	"base64.encode":   func(_ []ref.Val, units int) int { return units },
	"base64.decode":   func(_ []ref.Val, units int) int { return units },
}

// replaced is the size of a text in which each character is replaced.
func replaced(args []ref.Val, _ int) int {
	if len(args) < 3 {
		return 0
	}
	return (length(args[0]) + 1) * length(args[2]) / max(1, length(args[1])) / textUnit
}

// joined is the size of the separators; the elements are arguments.
func joined(args []ref.Val, units int) int {
	if len(args) < 2 {
		return 0
	}
	return units * length(args[1]) / textUnit
}

var precision = regexp.MustCompile(`\d+`)

// formattedBy is the size of a formatted text. A precision adds as many digits.
func formattedBy(args []ref.Val, units int) int {
	size := units * formatted
	text, _ := args[0].(types.String)
	for _, digits := range precision.FindAllString(string(text), -1) {
		n, err := strconv.Atoi(digits)
		if err != nil {
			return work + 1
		}
		size += min(n, work*textUnit) / textUnit
	}
	return size
}

// searched is how many characters are compared at most.
func searched(args []ref.Val, _ int) int {
	if len(args) < 2 {
		return 0
	}
	return length(args[0]) * length(args[1]) / textUnit / textUnit
}

// crossed is the work of comparing each element of one list with each of the other.
func crossed(args []ref.Val, units int) int {
	size := 0
	for _, arg := range args {
		if list, ok := arg.(traits.Lister); ok {
			size += len(elements(list))
		}
	}
	return units * size
}

// matched is the work of a regular expression: each character of the text may be compared
// with each instruction.
func matched(args []ref.Val, _ int) int {
	if len(args) < 2 {
		return 0
	}
	expression, _ := args[1].(types.String)
	instructions, ok := pattern.Size(string(expression))
	if !ok {
		return work + 1
	}
	return (length(args[0]) + 1) * instructions / textUnit
}

// length returns the number of bytes of a text.
func length(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	}
	return 0
}

func elements(list traits.Lister) []ref.Val {
	var all []ref.Val
	for it := list.Iterator(); it.HasNext() == types.True; {
		all = append(all, it.Next())
	}
	return all
}

// invoke calls a function as a program does.
func invoke(function *functions.Overload, args []ref.Val) ref.Val {
	switch {
	case function == nil,
		function.OperandTrait != 0 && !args[0].Type().HasTrait(function.OperandTrait):
		return types.MaybeNoSuchOverloadErr(args[0])
	case len(args) == 1 && function.Unary != nil:
		return function.Unary(args[0])
	case len(args) == 2 && function.Binary != nil:
		return function.Binary(args[0], args[1])
	case function.Function != nil:
		return function.Function(args...)
	}
	return types.MaybeNoSuchOverloadErr(args[0])
}

// payFor pays for values, and for everything in them as often as it is in there.
func (b *budget) payFor(values ...ref.Val) {
	for _, v := range values {
		b.consume(1 + length(v)/textUnit)
		switch v := v.(type) {
		case traits.Mapper:
			for it := v.Iterator(); it.HasNext() == types.True; {
				key := it.Next()
				b.payFor(key, v.Get(key))
			}
		case traits.Lister:
			for it := v.Iterator(); it.HasNext() == types.True; {
				b.payFor(it.Next())
			}
		case *types.Optional:
			if v.HasValue() {
				b.payFor(v.GetValue())
			}
		}
	}
}

// consume ends the evaluation if too little is left. No operator of the language can
// suppress that, unlike an error.
func (b *budget) consume(units int) {
	if b.left -= units; b.left < 0 || units < 0 {
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: "cost limit exceeded"})
	}
}
