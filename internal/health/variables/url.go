// SPDX-License-Identifier: Apache-2.0

package variables

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Path parses the path and query of a URL with variables. An error is a problem of the
// HealthCheck: it begins with the name of the field.
//
// A value stands for itself: it cannot add a segment to the path, nor a parameter to the
// query.
func Path(field, source string) (Template, error) { return parseURL(field, "", source) }

// URL parses a URL with variables in its path and query. The scheme and the host must not
// contain variables: the operator allows them as they are written. An error is a problem of
// the HealthCheck: it begins with the name of the field.
func URL(field, source string) (Template, error) {
	scheme, rest, found := strings.Cut(source, "://")
	if !found || scheme != "http" && scheme != "https" {
		return Template{}, fmt.Errorf("%s: it must begin with http:// or https://", field)
	}
	host := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		host = rest[:end]
	}
	if strings.Contains(host, "$") {
		return Template{}, fmt.Errorf("%s: a variable may stand only in the path and the query", field)
	}
	return parseURL(field, scheme+"://"+host, rest[len(host):])
}

// allowed matches the characters of a URL. If there is another one, Go escapes the whole
// path anew, and writes a slash that a value contains as it is.
var allowed = regexp.MustCompile(`^([A-Za-z0-9._~!$&'()*+,;=:@/?#\[\]-]|%[0-9A-Fa-f]{2})*$`)

func parseURL(field, before, source string) (Template, error) {
	if err := checkCharacters(field, before+source); err != nil {
		return Template{}, err
	}
	var b builder
	b.text.WriteString(before)
	write := inPath
	for i := 0; i < len(source); {
		name, length, err := variable(source[i:])
		switch {
		case err != nil:
			return Template{}, fmt.Errorf("%s: %w", field, err)
		case length > 0:
			b.variable(name, write)
			i += length
		case strings.HasPrefix(source[i:], "$$("):
			b.text.WriteString("$(")
			i += len("$$(")
		default:
			if source[i] == '?' {
				write = inQuery
			}
			b.text.WriteByte(source[i])
			i++
		}
	}
	return b.template(), nil
}

const unescaped = "it contains a character that must be escaped, or an incomplete escape: a space is %20, and a percent sign is %25"

func checkCharacters(field, source string) error {
	if allowed.MatchString(source) {
		return nil
	}
	return fmt.Errorf("%s: %s", field, unescaped)
}

// inPath writes a value as a part of a segment of a path. Servers remove segments of dots
// from a path, and the segment before them, and some do so if the slashes are escaped.
func inPath(value string) (string, error) {
	for segment := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == '/' || r == '\\' }) {
		if strings.Trim(segment, ".") == "" {
			return "", errors.New("has a segment of dots, but is in a path")
		}
	}
	return url.PathEscape(value), nil
}

func inQuery(value string) (string, error) { return url.QueryEscape(value), nil }
