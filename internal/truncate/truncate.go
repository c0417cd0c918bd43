// SPDX-License-Identifier: Apache-2.0

// Package truncate makes texts and lists small enough to be stored. Texts may quote user
// input, and users may create any number of objects.
package truncate

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// named is how many names a list contains before it counts the rest.
const named = 20

// most is the maximum length of a list of names, in bytes.
const most = 768

// Text returns the text up to a number of characters, and up to one and a half times as
// many bytes in JSON. A text that is cut ends in an ellipsis.
func Text(text string, characters int) string {
	const ellipsis = "…"
	bytes := characters + characters/2
	if len(text) <= characters && Size(text) <= bytes {
		return text
	}
	count, size := 0, len(ellipsis)
	for i, r := range text {
		width := encoded(r, len(text)-i)
		if count++; count > characters || size+width > bytes && Size(text) > bytes {
			return text[:i] + ellipsis
		}
		size += width
	}
	return text
}

// Line returns a text on one line, without what cannot be printed, up to a number of
// characters. It is for texts that become a part of ours.
func Line(text string, characters int) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != utf8.RuneError {
			return r
		}
		return ' '
	}, text)
	return Text(strings.Join(strings.Fields(printable), " "), characters)
}

// Message returns the text up to 1,024 characters. This is the limit in a status for any
// text that others write: messages, and the tokens with which users request a
// reconciliation.
func Message(text string) string {
	const most = 1024
	return Text(text, most)
}

// Size returns how many bytes a text needs in JSON, without its quotes.
func Size(text string) int {
	size := 0
	for i, r := range text {
		size += encoded(r, len(text)-i)
	}
	return size
}

// encoded returns how many bytes a character needs in JSON, as Go and the API server
// write it. Each byte of invalid UTF-8 becomes a replacement character.
func encoded(r rune, left int) int {
	const escaped = 6 // \u0000
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t':
		return 2
	case r < ' ', r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029', r == utf8.RuneError:
		return escaped
	}
	return min(utf8.RuneLen(r), left)
}

// List returns the first names, separated by commas, and counts the others.
func List(names []string) string { return Join(names, ", ") }

// Join is List with another separator.
func Join(names []string, separator string) string {
	length := 0
	for i, name := range names {
		length += len(name) + len(separator)
		if i > 0 && (i == named || length > most) {
			return fmt.Sprintf("%s and %d more", strings.Join(names[:i], separator), len(names)-i)
		}
	}
	return strings.Join(names, separator)
}
