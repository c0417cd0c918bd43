// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
)

// style defines the look of the output: with colours on a terminal, without elsewhere.
type style struct{ colours bool }

// styleFor respects https://no-color.org.
func styleFor(out *os.File) style {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return style{terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func (s style) paint(code, text string) string {
	if !s.colours {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(text string) string { return s.paint("1", text) }

func (s style) dim(text string) string { return s.paint("2", text) }

func (s style) actor(a actor) string {
	return s.paint(actorColours[a], fmt.Sprintf("%-13s", a))
}

func (s style) tone(t tone, text string) string {
	switch t {
	case good:
		return s.paint("32", text)
	case bad:
		return s.paint("31", text)
	case order:
		return s.bold(text)
	case plain:
	}
	return text
}
