// SPDX-License-Identifier: Apache-2.0

// Package show writes text for a terminal: signs, colours, columns and times. Texts of a
// cluster cannot control the terminal: everything that is printed is cleaned here, except
// a [Text], which only this package makes.
package show

import "strings"

// Style is what the place where text is shown can do.
type Style struct {
	// Colours paints texts. A colour only repeats what a sign or a word says.
	Colours bool
	// Unicode allows signs and lines that are not ASCII.
	Unicode bool
	// Redraws is true if lines can be drawn again in place.
	Redraws bool
	// Width is the number of columns; 0 if lines may have any length.
	Width int
}

// StyleOf returns the style for a terminal, or for what is no terminal, with these
// environment variables. It follows https://no-color.org, and the locale as POSIX defines
// it: LC_ALL, LC_CTYPE, LANG, the first one that is set.
func StyleOf(terminal bool, width int, env func(string) string) Style {
	style := Style{Unicode: speaksUTF8(env)}
	if !terminal {
		return style
	}
	style.Width, style.Redraws = width, env("TERM") != "dumb"
	style.Colours = style.Redraws && env("NO_COLOR") == ""
	return style
}

// speaksUTF8 is true where no locale is set, as in most containers and CI jobs: their logs
// are read as UTF-8.
func speaksUTF8(env func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToUpper(env(name)); locale != "" {
			return strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
		}
	}
	return true
}

// Text is safe to print as it is.
type Text string

// Sign is a symbol at the beginning of a line.
type Sign int

const (
	// Do is something that is done, or to do.
	Do Sign = iota
	// Well is something that is as it should be.
	Well
	// Bad is something that prevents something.
	Bad
	// Waits is something that ends by itself.
	Waits
	// Warns is something to look at.
	Warns
	// Paused is something that a user has stopped.
	Paused
	// Asks is a question.
	Asks
)

var signs = map[Sign]struct{ unicode, ascii, colour string }{
	Do:     {"►", ">", bold},
	Well:   {"✔", "ok", green},
	Bad:    {"✗", "x", red},
	Waits:  {"◎", "o", yellow},
	Warns:  {"⚠", "!", yellow},
	Paused: {"‖", "=", dim},
	Asks:   {"?", "?", bold},
}

// Colours of ECMA-48, as parameters of SGR: of the basic ones those that terminals show in
// a way that is readable on a light and on a dark background. Blue is not one of them: on
// black, several show it in #0000ee or #0037da. Bold is in the colour of the text.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// Sign returns a sign.
func (s Style) Sign(sign Sign) Text { return s.paint(signs[sign].colour, s.symbol(sign)) }

func (s Style) symbol(sign Sign) string {
	if s.Unicode {
		return signs[sign].unicode
	}
	return signs[sign].ascii
}

// Bold returns a text that stands out.
func (s Style) Bold(text string) Text { return s.paint(bold, Clean(text)) }

// Tinted returns a text in the colour of a sign.
func (s Style) Tinted(sign Sign, text string) Text { return s.paint(signs[sign].colour, Clean(text)) }

func (s Style) paint(code, clean string) Text {
	if !s.Colours || clean == "" {
		return Text(clean)
	}
	return Text("\x1b[" + code + "m" + clean + "\x1b[0m")
}
