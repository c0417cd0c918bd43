// SPDX-License-Identifier: Apache-2.0

package show

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// fewest is how many columns a text must have to be cut in its middle, where two pieces say
// more than one, or to be wrapped beside what it is about.
const fewest = 24

// ellipsis shows where a text was cut.
func (s Style) ellipsis() string {
	if s.Unicode {
		return "…"
	}
	return "..."
}

// shorten cuts a text to a number of columns, never inside a character. It is cut in its
// middle, to two parts of its beginning and one of its end: many errors begin with the
// object and end with the cause.
func (s Style) shorten(text string, columns int) string {
	if runewidth.StringWidth(text) <= columns {
		return text
	}
	end := s.ellipsis()
	switch {
	case columns < runewidth.StringWidth(end):
		return runewidth.Truncate(text, columns, "")
	case columns < fewest:
		return runewidth.Truncate(text, columns, end)
	}
	gap := " " + end + " "
	columns -= runewidth.StringWidth(gap)
	begin := runewidth.Truncate(text, columns-columns/3, "")
	end = runewidth.TruncatePrefix(text, columns/3, "")
	return strings.TrimSuffix(begin, " ") + gap + strings.TrimPrefix(end, " ")
}

// fold breaks a text into lines of at most so many columns: between words, or inside of a
// word that is longer than a line.
func fold(text string, columns int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && runewidth.StringWidth(line)+1+runewidth.StringWidth(word) <= columns {
			line += " " + word
			continue
		}
		lines = nonEmpty(lines, line)
		for line = word; runewidth.StringWidth(line) > columns; {
			first := runewidth.Truncate(line, columns, "")
			if first == "" { // not even one character fits
				break
			}
			lines, line = append(lines, first), line[len(first):]
		}
	}
	return nonEmpty(lines, line)
}

func nonEmpty(lines []string, line string) []string {
	if line == "" {
		return lines
	}
	return append(lines, line)
}
