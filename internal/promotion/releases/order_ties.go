// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"cmp"
	"math/big"
	"strings"
)

// tieBreak compares two places that are equal for the ImagePolicy. Flux names any of their
// tags, another one at each evaluation. So without an order of our own, an older build
// would replace a newer one by chance.
func (p place) tieBreak(other place) int {
	switch p.Kind {
	case BySemver:
		return compareBuilds(p.version.Metadata(), other.version.Metadata())
	case ByNumber:
		return compareExactly(p, other)
	case ByAlphabet, ByAppearance:
	}
	return 0
}

// compareBuilds compares the build metadata of two semantic versions as semver compares
// prereleases: identifier by identifier, and fewer of them come first.
func compareBuilds(a, b string) int {
	for a != "" && b != "" {
		var first, second string
		first, a, _ = strings.Cut(a, ".")
		second, b, _ = strings.Cut(b, ".")
		if result := compareIdentifiers(first, second); result != 0 {
			return result
		}
	}
	return cmp.Compare(len(a), len(b)) // one of them has ended
}

// compareIdentifiers compares numbers by value, whatever their size, and other identifiers
// by their bytes. Numbers come first.
func compareIdentifiers(a, b string) int {
	numberA, numberB := isNumber(a), isNumber(b)
	if !numberA || !numberB {
		return cmp.Or(firstIf(numberA, numberB), strings.Compare(a, b))
	}
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

func isNumber(s string) bool { return strings.Trim(s, "0123456789") == "" }

// compareExactly compares two numbers that Flux rounds to the same float64.
func compareExactly(a, b place) int {
	if a.text == b.text {
		return 0
	}
	exactA, exactB := exact(a), exact(b)
	if exactA == nil || exactB == nil {
		return 0
	}
	return exactA.Cmp(exactB)
}

// The bounds of numbers that are compared exactly. Tenants write them, and an exponent can
// make a number of any size.
const (
	longestNumber   = 128 // as long as a tag can be
	longestExponent = len("-324")
)

// exact returns the exact value of a number. If it is too long, that is the rounded value.
// It returns nil if the number is infinite or none.
func exact(p place) *big.Rat {
	at := strings.LastIndexAny(p.text, "pP")
	if at < 0 {
		at = strings.LastIndexAny(p.text, "eE")
	}
	if len(p.text) <= longestNumber && (at < 0 || len(p.text)-at-1 <= longestExponent) {
		if value, ok := new(big.Rat).SetString(p.text); ok {
			return value
		}
	}
	return new(big.Rat).SetFloat64(p.number)
}
