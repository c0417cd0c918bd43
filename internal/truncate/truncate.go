// SPDX-License-Identifier: Apache-2.0

// Package truncate keeps texts and lists small enough to be stored: others write
// what is quoted, and as many objects as they like.
package truncate

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// named is how many names a list gives before it counts the rest.
const named = 20

// most is how long a list of names may be, in bytes.
const most = 768

// Text returns the text up to so many characters, and up to half as many bytes
// more as it takes in JSON. One that is longer ends in an ellipsis.
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

// Message returns the text up to 1,024 characters, which is what a status keeps of any
// text that others write: messages, and the tokens by which users ask for a
// reconciliation.
func Message(text string) string {
	const most = 1024
	return Text(text, most)
}

// Size is how many bytes a text takes in JSON, without its quotes.
func Size(text string) int {
	size := 0
	for i, r := range text {
		size += encoded(r, len(text)-i)
	}
	return size
}

// encoded is how many bytes a character takes in JSON, as Go and the API server
// write it. Of what is no UTF-8 each byte becomes a character that says so.
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

// List names the first things, with commas between, and counts the others.
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
