// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// line is one line of the demo's output.
type line struct {
	// at is when it was printed, from the first one of the step.
	at time.Duration
	// text of the line, without the time and the actor.
	text string
	// clock and actor are empty if the line has none.
	clock, actor string
}

// event is a line such as "00:26.1  Rollout       promotes 1.2.0".
var event = regexp.MustCompile(`^(\d\d):(\d\d\.\d)  (\w+) +(.*)$`)

// step returns the lines from the one with the title to the next step.
func step(printed, title string) ([]line, error) {
	_, rest, found := strings.Cut("\n"+printed, "\n"+title+"\n")
	if title == "" || !found {
		return nil, fmt.Errorf("no line is %q: is the output of another scenario?", title)
	}
	lines := []line{{text: title}}
	var begun, now time.Duration
	for _, text := range strings.Split(rest, "\n") {
		if isTitle(text) {
			break
		}
		next := line{at: now, text: text}
		if parts := event.FindStringSubmatch(text); parts != nil {
			at := clock(parts[1], parts[2])
			if begun == 0 {
				begun = at
			}
			now = at - begun
			next = line{at: now, clock: parts[1] + ":" + parts[2], actor: parts[3], text: parts[4]}
		}
		lines = append(lines, next)
	}
	return withoutBlankEnd(lines), nil
}

// onlyOf returns the title, the lines that match, and what continues these. Of several blank
// lines it keeps one.
func onlyOf(lines []line, wanted *regexp.Regexp) []line {
	some, kept := lines[:1:1], true
	for _, l := range lines[1:] {
		continues := l.actor == "" && strings.HasPrefix(l.text, strings.Repeat(" ", textColumn-1))
		if !continues {
			kept = wanted.MatchString(strings.TrimSpace(l.actor + " " + l.text))
		}
		isBlank := l.actor == "" && l.text == ""
		if kept || isBlank && some[len(some)-1].text != "" {
			some = append(some, l)
		}
	}
	return withoutBlankEnd(some)
}

// isTitle reports whether a line begins a step: all others are blank or indented, or
// begin with a time.
func isTitle(text string) bool {
	return text != "" && text[0] != ' ' && !event.MatchString(text)
}

func clock(minutes, seconds string) time.Duration {
	m, _ := strconv.Atoi(minutes)
	s, _ := strconv.ParseFloat(seconds, 64)
	return time.Duration(m)*time.Minute + time.Duration(s*float64(time.Second))
}

func withoutBlankEnd(lines []line) []line {
	for len(lines) > 0 && lines[len(lines)-1].text == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}
