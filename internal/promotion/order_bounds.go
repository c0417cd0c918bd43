// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

// What a tenant may write into an ImagePolicy is prepared in each pass of each Rollout that
// names it, by a process that all tenants share. Flux's own schema sets no limits.
const (
	// longestExpression is how many bytes a range, a pattern or what it extracts may have.
	longestExpression = 1 << 10
	// largestPattern is how many instructions a pattern may have once its repetitions are
	// written out. An instruction takes forty bytes: of a{1000}, three thousand times, Go
	// makes a hundred megabytes.
	largestPattern = 10_000
)

func (s OrderSpec) bounded() error {
	for field, text := range map[string]string{"semver range": s.Range, "filterTags.pattern": s.Pattern, "filterTags.extract": s.Extract} {
		if len(text) > longestExpression {
			return fmt.Errorf("%s has %d characters, and may have %d", field, len(text), longestExpression)
		}
	}
	return nil
}

// compilePattern prepares a pattern, unless that would take too much memory.
func compilePattern(pattern string) (*regexp.Regexp, error) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what it is about
	}
	if instructions(parsed) > largestPattern {
		return nil, fmt.Errorf("it is too large: with its repetitions written out it may have %d steps", largestPattern)
	}
	return regexp.Compile(pattern) //nolint:wrapcheck // it says what it is about
}

// instructions estimates how many a compiled expression has, up to one more than it may
// have.
func instructions(re *syntax.Regexp) int {
	n := len(re.Rune)
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	n = max(1, n)
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return min(n, largestPattern+1)
}
