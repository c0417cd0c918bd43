// SPDX-License-Identifier: Apache-2.0

// Package pattern compiles regular expressions that tenants write. They are in objects of
// Flux, whose schema sets no limits, and all tenants share the memory of the process.
package pattern

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

const (
	// Longest is how many bytes an expression may have.
	Longest = 1 << 10
	// largest is how many instructions it may have after its repetitions are expanded. An
	// instruction needs forty bytes: for three thousand times a{1000}, Go needs a hundred
	// megabytes.
	largest = 10_000
)

// Compile compiles an expression (RE2, as in package regexp). It returns an error if the
// expression cannot be parsed, or would need too much memory.
func Compile(expression string) (*regexp.Regexp, error) {
	if len(expression) > Longest {
		return nil, fmt.Errorf("it has %d characters, and may have %d", len(expression), Longest)
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if instructions(parsed) > largest {
		return nil, fmt.Errorf("it is too large: with its repetitions written out it may have %d steps", largest)
	}
	return regexp.Compile(expression)
}

// Size estimates how many instructions an expression has after it is compiled. It returns
// false if the expression needs too much memory for Compile. An expression that cannot be
// parsed has none.
func Size(expression string) (int, bool) {
	if len(expression) > Longest {
		return 0, false
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return 0, true
	}
	n := instructions(parsed)
	return n, n <= largest
}

// instructions estimates how many instructions a compiled expression has. It counts up to
// one more than the maximum.
func instructions(re *syntax.Regexp) int {
	n := len(re.Rune)
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	n = max(1, n)
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return min(n, largest+1)
}
