// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
)

// Only returns the text that an expression matches, if it matches exactly one: it is
// anchored at both ends, and leaves no choice in between. The text has no line breaks.
func Only(expression string) (string, bool) {
	if _, ok := Size(expression); !ok {
		return "", false
	}
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return "", false
	}
	only, ok := onlyOf(parsed)
	if !ok || !only.begins || !only.ends {
		return "", false
	}
	// Word boundaries count as empty, and may match nowhere.
	matches, err := regexp.MatchString(expression, only.text)
	return only.text, err == nil && matches
}

// single is the one text that a part of an expression matches.
type single struct {
	text string
	// begins and ends are true if the part is anchored there.
	begins, ends bool
}

// onlyOf returns the one text that a part of an expression matches.
func onlyOf(re *syntax.Regexp) (single, bool) {
	switch re.Op {
	case syntax.OpCapture:
		return onlyOf(re.Sub[0])
	case syntax.OpConcat:
		return inSequence(re.Sub)
	case syntax.OpAlternate:
		return eachTheSame(re.Sub)
	case syntax.OpRepeat:
		return repeated(re)
	default:
		return onlyOfLeaf(re)
	}
}

// onlyOfLeaf returns the one text that a part without parts matches.
func onlyOfLeaf(re *syntax.Regexp) (single, bool) {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return single{}, true
	case syntax.OpBeginText, syntax.OpBeginLine:
		return single{begins: true}, true
	case syntax.OpEndText, syntax.OpEndLine:
		return single{ends: true}, true
	case syntax.OpLiteral:
		return single{text: string(re.Rune)}, re.Flags&syntax.FoldCase == 0 || !hasCase(re.Rune)
	case syntax.OpCharClass:
		return single{text: string(re.Rune[:1])}, len(re.Rune) == 2 && re.Rune[0] == re.Rune[1]
	default: // any number of times, any character, or nothing at all
		return single{}, false
	}
}

// hasCase reports whether one of the characters has another case.
func hasCase(characters []rune) bool {
	for _, r := range characters {
		if unicode.SimpleFold(r) != r {
			return true
		}
	}
	return false
}

func inSequence(parts []*syntax.Regexp) (single, bool) {
	var whole single
	for _, part := range parts {
		next, ok := onlyOf(part)
		if !ok || next.begins && whole.text != "" || whole.ends && next.text != "" {
			return single{}, false
		}
		whole = single{whole.text + next.text, whole.begins || next.begins, whole.ends || next.ends}
	}
	return whole, true
}

func eachTheSame(choices []*syntax.Regexp) (single, bool) {
	first, ok := onlyOf(choices[0])
	for _, choice := range choices[1:] {
		if other, also := onlyOf(choice); !also || other != first {
			return single{}, false
		}
	}
	return first, ok
}

func repeated(re *syntax.Regexp) (single, bool) {
	one, ok := onlyOf(re.Sub[0])
	if !ok || re.Min != re.Max || one.begins || one.ends {
		return single{}, false
	}
	return single{text: strings.Repeat(one.text, re.Min)}, true
}
