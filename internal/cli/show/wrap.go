// SPDX-License-Identifier: Apache-2.0

package show

import (
	"regexp"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Prose writes a line as [Printer.Line] does. On a terminal that is too narrow for it, it
// continues on the next line, two columns further in, and no word is cut. It is not for
// commands: a line break would be copied with them.
func (p Printer) Prose(format string, args ...any) {
	text := &strings.Builder{}
	Printer{Style: p.Style, Out: text}.Line(format, args...)
	p.Line("%s", Text(p.wrap(strings.TrimSuffix(text.String(), "\n"))))
}

// Command writes what a user can do, with a remark behind it, or below it where there is no
// room. A shell takes each line of the remark as a comment. The command itself is never broken.
func (p Printer) Command(indent, command, remark string) {
	line := indent + string(p.Sign(Do)) + " " + Clean(command)
	switch behind := line + "   # " + Clean(remark); {
	case remark == "":
		p.Line("%s", Text(line))
	case p.Width == 0 || widthOf(behind) <= p.Width:
		p.Line("%s", Text(behind))
	default:
		p.Line("%s", Text(line))
		for _, part := range fold(Clean(remark), max(p.Width-len(indent)-len("    # "), 1)) {
			p.Line("%s    # %s", Text(indent), Text(part))
		}
	}
}

// wrap breaks a line between words.
func (s Style) wrap(line string) string {
	if s.Width == 0 || widthOf(line) <= s.Width {
		return line
	}
	words := strings.TrimLeft(line, " ")
	indent := line[:len(line)-len(words)]
	var done []string
	current := indent
	for i, word := range strings.Split(words, " ") {
		switch next := current + " " + word; {
		case i == 0:
			current += word
		case widthOf(next) > s.Width && word != "":
			done, current = append(done, strings.TrimRight(current, " ")), indent+"  "+word
		default:
			current = next
		}
	}
	return strings.Join(append(done, current), "\n")
}

// painting is what makes a text bold or gives it a color. It takes no room.
var painting = regexp.MustCompile("\x1b\\[[0-9;]*m")

func widthOf(text string) int { return runewidth.StringWidth(painting.ReplaceAllString(text, "")) }
