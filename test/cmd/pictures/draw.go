// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"html"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// Sizes of the picture, in pixels of the SVG.
const (
	characterWidth = 8.45
	lineHeight     = 21
	border         = 24
	titleBar       = 34
	actorColumn    = 10 // characters before the actor
	textColumn     = 24 // characters before the text of a line with an actor
)

// pace is how many times faster than in the demo the lines appear, and longestWait how
// long the picture waits at most for the next one.
const (
	pace        = 1.5
	longestWait = 2 * time.Second
)

// style lets nothing be invisible, because previews show the first moment. It has colors for readers whose screens are dark, and others for those whose screens
// are light.
const style = `
    text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d0d7de; white-space: pre }
    .back { fill: #1c2128 } .title { fill: #ffffff; font-weight: 600 } .clock { fill: #768390 }
    .actor { fill: #6cb6ff } .bad { fill: #ff7b72 } .good { fill: #7ee787 } .bar { fill: #768390 }
    @media (prefers-color-scheme: light) {
      text { fill: #1f2328 } .back { fill: #f6f8fa } .title { fill: #000000 } .clock { fill: #59636e }
      .actor { fill: #0550ae } .bad { fill: #b3202a } .good { fill: #116329 } .bar { fill: #59636e }
    }
    .line { animation: appear .2s both } @keyframes appear { from { opacity: .6 } to { opacity: 1 } }
    @media (prefers-reduced-motion: reduce) { .line { animation: none } }
`

// marked are the words and signs that are colored, with their class: outcomes, and what can
// be done.
var (
	marked  = regexp.MustCompile(`\b(Unhealthy|Failed|timed out|gives up|Healthy|Succeeded)\b|[✓✔✗►]`)
	classes = map[string]string{"Healthy": "good", "Succeeded": "good", "✓": "good", "✔": "good", "►": "actor"}
)

// draw returns an SVG of a terminal with the lines. Its title bar has the command that
// printed them.
func draw(command string, lines []line) string {
	var svg strings.Builder
	width, height := float64(2*border)+characterWidth*float64(longest(lines)), titleBar+border+lineHeight*len(lines)
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %d" role="img" aria-label="%s">`+"\n",
		width, height, html.EscapeString(lines[0].text))
	fmt.Fprintf(&svg, "  <style>%s  </style>\n", style)
	fmt.Fprintf(&svg, `  <rect width="%.0f" height="%d" rx="8" class="back"/>`+"\n", width, height)
	for i, color := range []string{"#ff5f57", "#febc2e", "#28c840"} {
		fmt.Fprintf(&svg, `  <circle cx="%d" cy="17" r="6" fill="%s"/>`+"\n", border+20*i, color)
	}
	fmt.Fprintf(&svg, `  <text class="bar" x="%.0f" y="22" text-anchor="middle">%s</text>`+"\n", width/2, html.EscapeString(command))
	var appears, before time.Duration
	for i, l := range lines {
		appears += min(time.Duration(float64(l.at-before)/pace), longestWait)
		before = l.at
		fmt.Fprintf(&svg, `  <g class="line" style="animation-delay: %.1fs">%s</g>`+"\n",
			appears.Seconds(), drawLine(l, titleBar+lineHeight*(i+1), i == 0))
	}
	svg.WriteString("</svg>\n")
	return svg.String()
}

// drawLine returns the texts of a line at a height.
func drawLine(l line, y int, isTitle bool) string {
	switch {
	case isTitle:
		return text(0, y, "title", html.EscapeString(l.text))
	case l.actor == "":
		return text(0, y, "", mark(l.text))
	}
	return text(0, y, "clock", l.clock) + text(actorColumn-1, y, "actor", html.EscapeString(l.actor)) +
		text(textColumn-1, y, "", mark(l.text))
}

func text(column, y int, class, content string) string {
	if class != "" {
		class = fmt.Sprintf(` class="%s"`, class)
	}
	return fmt.Sprintf(`<text%s x="%.1f" y="%d" xml:space="preserve">%s</text>`, class, border+characterWidth*float64(column), y, content)
}

// mark escapes a text, and colors what is good and bad in it.
func mark(plain string) string {
	return marked.ReplaceAllStringFunc(html.EscapeString(plain), func(word string) string {
		return fmt.Sprintf(`<tspan class="%s">%s</tspan>`, cmp.Or(classes[word], "bad"), word)
	})
}

// longest is the width of the widest line, in characters.
func longest(lines []line) int {
	widest := 0
	for _, l := range lines {
		width := utf8.RuneCountInString(l.text)
		if l.actor != "" {
			width += textColumn - 1
		}
		widest = max(widest, width)
	}
	return widest
}
