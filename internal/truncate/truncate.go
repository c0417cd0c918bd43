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

const (
	// ellipsis shows where a text was cut.
	ellipsis = "…"
	// gap is what a text that was cut has in its middle.
	gap = " " + ellipsis + " "
)

// Text returns the text up to a number of characters, at least 4, and up to one and a half
// times as many bytes in JSON. A longer text is cut in its middle, to two parts of its
// beginning and one of its end: many errors begin with the object and end with the cause.
// It may be cut again, to the same or to fewer characters, and is then as if it was never
// cut before.
func Text(text string, characters int) string {
	bytes := characters + characters/2
	if utf8.RuneCountInString(text) <= characters && Size(text) <= bytes {
		return text
	}
	characters, bytes = characters-utf8.RuneCountInString(gap), bytes-len(gap)
	begin := text[:begins(text, characters-characters/3, bytes-bytes/3)]
	end := text[ends(text, characters/3, bytes/3):]
	return joined(begin, end)
}

// begins returns how long the beginning of a text is that has at most so many characters
// and bytes in JSON.
func begins(text string, characters, bytes int) int {
	for i, r := range text {
		bytes -= encoded(r, len(text)-i)
		if characters--; characters < 0 || bytes < 0 {
			return i
		}
	}
	return len(text)
}

// ends returns where the end of a text begins that has at most so many characters and
// bytes in JSON.
func ends(text string, characters, bytes int) int {
	at := len(text)
	for at > 0 {
		r, width := utf8.DecodeLastRuneInString(text[:at])
		bytes -= encoded(r, width)
		if characters--; characters < 0 || bytes < 0 {
			return at
		}
		at -= width
	}
	return at
}

// joined returns the two parts of a text that was cut. If it was cut at the same place
// before, what is left of that is removed.
func joined(begin, end string) string {
	if at := strings.LastIndex(begin, ellipsis); at >= 0 && at >= len(begin)-len(gap) {
		begin = begin[:at]
	}
	if at := strings.Index(end, ellipsis); at >= 0 && at+len(ellipsis) <= len(gap) {
		end = end[at+len(ellipsis):]
	}
	return strings.TrimSuffix(begin, " ") + gap + strings.TrimPrefix(end, " ")
}

// Line returns a text on one line, without what cannot be printed, up to a number of
// characters as [Text] does. It is for texts that become a part of ours.
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
