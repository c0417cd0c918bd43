// SPDX-License-Identifier: Apache-2.0

package variables

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
)

// Query parses a PromQL expression with variables. An error is a problem of the
// HealthCheck: it begins with the name of the field. The window is spec.prometheus.window:
// $(window) needs one.
//
// PromQL has three quotes. In "…" and '…' a backslash escapes; in `…` nothing does. The
// values of texts may stand only in quotes: outside, a part of them could be an operator.
// Durations and numbers may stand anywhere. In the value of a regular expression, as in
// {version=~"$(version)"}, a value stands for itself. A comment is left as it is.
func Query(field, source string, window time.Duration) (Template, error) {
	q := query{source: source}
	for q.at < len(source) {
		if err := q.next(); err != nil {
			return Template{}, fmt.Errorf("%s: %w", field, err)
		}
	}
	if q.quote != 0 {
		return Template{}, fmt.Errorf("%s: the quote %c is not closed", field, q.quote)
	}
	template := q.template()
	if template.Uses(Window) && Duration(window) == "" {
		return Template{}, fmt.Errorf("%s: it contains %s, so set spec.prometheus.window", field, written(Window))
	}
	return template, nil
}

// query is a PromQL expression that is being parsed.
type query struct {
	builder
	source string
	at     int
	quote  byte // of the string that is being parsed; 0 outside
	regexp bool // the string is a regular expression
}

// next parses one character, comment or variable.
func (q *query) next() error {
	rest := q.source[q.at:]
	switch c := rest[0]; {
	case strings.HasPrefix(rest, "$$("):
		q.text.WriteString("$(")
		q.at += len("$$(")
		return nil
	case c == '$':
		return q.dollar(rest)
	case c == '#' && q.quote == 0:
		comment, _, _ := strings.Cut(rest, "\n")
		q.copy(len(comment))
	case c == '\\' && (q.quote == '"' || q.quote == '\''):
		q.copy(min(2, len(rest)))
	case q.quote == 0 && isQuote(c):
		q.quote, q.regexp = c, q.followsRegexp()
		q.copy(1)
	case c == q.quote:
		q.quote = 0
		q.copy(1)
	default:
		q.copy(1)
	}
	return nil
}

func (q *query) dollar(rest string) error {
	name, length, err := variable(rest)
	switch {
	case err != nil:
		return err
	case length == 0:
		q.copy(1)
		return nil
	case q.quote == 0 && !isOfTime(name):
		return fmt.Errorf(`%s must stand in quotes, as in {label="%s"}`, written(name), written(name))
	}
	q.variable(name, q.writer())
	q.at += length
	return nil
}

func (q *query) copy(n int) {
	q.text.WriteString(q.source[q.at : q.at+n])
	q.at += n
}

func isQuote(c byte) bool { return c == '"' || c == '\'' || c == '`' }

// followsRegexp reports whether the string that begins here is the value of =~ or !~.
func (q *query) followsRegexp() bool {
	before := strings.TrimRightFunc(q.source[:q.at], unicode.IsSpace)
	return strings.HasSuffix(before, "=~") || strings.HasSuffix(before, "!~")
}

// writer returns how a value is written where the parser stands.
func (q *query) writer() func(string) (string, error) {
	quote, isRegexp := q.quote, q.regexp
	return func(value string) (string, error) {
		if isRegexp {
			value = regexp.QuoteMeta(value)
		}
		switch quote {
		case 0:
			return value, nil
		case '`':
			return inRawString(value)
		}
		return escaped(value, quote), nil
	}
}

func inRawString(value string) (string, error) {
	if strings.ContainsRune(value, '`') {
		return "", errors.New("contains a backtick, but is between backticks: use double quotes in the query")
	}
	return value, nil
}

// escaped writes a value into a string that a backslash escapes. Values contain no control
// characters.
func escaped(value string, quote byte) string {
	return strings.NewReplacer(`\`, `\\`, string(quote), `\`+string(quote)).Replace(value)
}
