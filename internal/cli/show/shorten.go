// SPDX-License-Identifier: Apache-2.0

package show

import (
	"strings"

	"github.com/mattn/go-runewidth"
)

// fewest is how wide the last column must be for a text to be wrapped in it. In a narrower one
// the text goes below its row.
const fewest = 24

// ellipsis shows where a text was cut.
func (s Style) ellipsis() string {
	if s.Unicode {
		return "…"
	}
	return "..."
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
