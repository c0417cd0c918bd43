// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"maps"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/ext"
)

// dialect is the language of the expressions of a class. It is built once.
type dialect struct {
	// untyped is true if types are only checked when an expression is evaluated.
	untyped   bool
	env       func() *cel.Env
	functions func() map[string]*functions.Overload
}

var (
	prometheusDialect = newDialect(
		cel.Variable("value", cel.DoubleType),
		cel.Variable("baseline", cel.OptionalType(cel.DoubleType)),
	)
	httpDialect = newDialect(
		cel.Variable("status", cel.IntType),
		cel.Variable("body", cel.StringType),
		cel.Variable("json", cel.DynType),
		cel.Variable("headers", cel.MapType(cel.StringType, cel.ListType(cel.StringType))),
		cel.Variable("latency", cel.DurationType),
	)
)

// releaseFields are the keys of the variable release.
var releaseFields = map[string]bool{"tag": true, "digest": true, "version": true, "revision": true}

// newDialect returns the dialect of Flux (fluxcd/pkg, runtime/cel) with some variables, and
// those of all classes.
func newDialect(variables ...cel.EnvOption) *dialect {
	variables = append(variables,
		cel.Variable("release", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("elapsed", cel.DurationType),
		cel.ParserExpressionSizeLimit(Longest))
	d := &dialect{}
	d.env = sync.OnceValue(func() *cel.Env {
		env, err := cel.NewEnv(append(fluxDialect(), variables...)...)
		if err != nil {
			panic(err) // the options are constant
		}
		return env
	})
	d.functions = sync.OnceValue(func() map[string]*functions.Overload { return bindings(d.env()) })
	return d
}

func fluxDialect() []cel.EnvOption {
	return append([]cel.EnvOption{
		cel.HomogeneousAggregateLiterals(),
		cel.EagerlyValidateDeclarations(true),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(),
	}, extensions()...)
}

func extensions() []cel.EnvOption { return []cel.EnvOption{ext.Strings(), ext.Sets(), ext.Encoders()} }

// extensionFunctions returns the names of the functions of the extensions.
var extensionFunctions = sync.OnceValue(func() []string {
	env, err := cel.NewCustomEnv(extensions()...)
	if err != nil {
		panic(err) // the options are constant
	}
	return slices.Sorted(maps.Keys(env.Functions()))
})

// bindings returns the implementations of all functions, by the name of the function or of
// one of its overloads.
func bindings(env *cel.Env) map[string]*functions.Overload {
	all := map[string]*functions.Overload{}
	for _, function := range env.Functions() {
		overloads, err := function.Bindings()
		if err != nil {
			panic(err) // the libraries are constant
		}
		for _, overload := range overloads {
			all[overload.Operator] = overload
		}
	}
	return all
}
