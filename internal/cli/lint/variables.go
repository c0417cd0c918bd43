// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"regexp"
	"strings"
)

// variable matches a variable that Flux substitutes: a dollar sign before it makes it a
// text, and a modifier after its name may give a default.
var variable = regexp.MustCompile(`\$?\$\{([_[:alpha:]][_[:alpha:][:digit:]]*)([^{}]*)\}`)

// hasVariable reports whether a text contains the begin of a variable.
func hasVariable(text string) bool { return strings.Contains(text, "${") }

// substitute returns the text with its variables replaced, and whether all their values
// are known: from vars, or from defaults. A text that would be longer than the limit is
// not known.
func substitute(text string, vars map[string]string, limit int) (string, bool) {
	if !hasVariable(text) {
		return text, true
	}
	var result strings.Builder
	from := 0
	for _, match := range variable.FindAllStringSubmatchIndex(text, -1) {
		result.WriteString(text[from:match[0]])
		from = match[1]
		value, known := valueOf(text[match[0]:match[1]], text[match[2]:match[3]], text[match[4]:match[5]], vars)
		if !known || result.Len()+len(value) > limit {
			return text, false
		}
		result.WriteString(value)
	}
	result.WriteString(text[from:])
	return result.String(), true
}

// valueOf returns the value of one variable, and whether it is known. Of the modifiers,
// it knows the defaults.
func valueOf(whole, name, modifier string, vars map[string]string) (string, bool) {
	if strings.HasPrefix(whole, "$$") {
		return whole[1:], true
	}
	fallback, isDefault := defaultOf(modifier)
	if modifier != "" && !isDefault {
		return "", false
	}
	if value, ok := vars[name]; ok {
		return value, true
	}
	return fallback, isDefault
}

// defaultOf returns the default in a modifier, and whether it has one.
func defaultOf(modifier string) (string, bool) {
	for _, operator := range []string{":=", ":-", "=", "-"} {
		if fallback, ok := strings.CutPrefix(modifier, operator); ok {
			return fallback, true
		}
	}
	return "", false
}

// use is one use of a variable.
type use struct {
	name string
	// hasDefault is true if it has a value without being set, and fallback is that value.
	hasDefault bool
	fallback   string
}

// usesIn returns the variables that a text uses.
func usesIn(text string) []use {
	if !hasVariable(text) {
		return nil
	}
	var all []use
	for _, match := range variable.FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(match[0], "$$") {
			fallback, hasDefault := defaultOf(match[2])
			all = append(all, use{name: match[1], hasDefault: hasDefault, fallback: fallback})
		}
	}
	return all
}
