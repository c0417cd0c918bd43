// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// speakEvery is how long a step of the preparations may print nothing.
const speakEvery = 10 * time.Second

// narrator writes the story. All output goes through it. Thus lines of several goroutines
// never mix.
type narrator struct {
	style style
	begun time.Time

	mu   sync.Mutex
	out  io.Writer
	last time.Time
}

func newNarrator(out *os.File) *narrator {
	now := time.Now()
	return &narrator{style: styleFor(out), begun: now, out: out, last: now}
}

// Write passes on the output of the builds.
func (n *narrator) Write(text []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.last = time.Now()
	return n.out.Write(text)
}

func (n *narrator) print(format string, args ...any) {
	_, _ = fmt.Fprintf(n, format, args...)
}

// note prints a line that is not part of the story.
func (n *narrator) note(format string, args ...any) {
	n.print("%s\n", fmt.Sprintf(format, args...))
}

// during runs a step of the preparations. It prints when the step begins, that it
// continues if nothing else was printed for a while, and how long it took.
func (n *narrator) during(what string, step func() error) error {
	begun := time.Now()
	n.note("%s %s...", n.style.dim("==>"), what)
	done := make(chan error, 1)
	go func() { done <- step() }()
	for {
		select {
		case err := <-done:
			if err == nil {
				n.note("    done in %s", time.Since(begun).Round(100*time.Millisecond))
			}
			return err
		case <-time.After(speakEvery):
			n.stillAtIt(what, begun)
		}
	}
}

func (n *narrator) stillAtIt(what string, begun time.Time) {
	n.mu.Lock()
	silent := time.Since(n.last)
	n.mu.Unlock()
	if silent >= speakEvery {
		n.note("    %s: still at it, for %s", what, time.Since(begun).Round(time.Second))
	}
}

// begin sets the beginning of the story to now.
func (n *narrator) begin() { n.begun = time.Now() }

// chapter begins a chapter.
func (n *narrator) chapter(number int, title, intro string) {
	n.print("\n%s\n", n.style.bold(fmt.Sprintf("%d. %s", number, title)))
	n.print("%s\n\n", wrap(intro, "   "))
}

// tell prints lines of the story, each after the time and the actor.
func (n *narrator) tell(lines ...line) {
	for _, l := range lines {
		since := time.Since(n.begun)
		moment := fmt.Sprintf("%02d:%04.1f", int(since.Minutes()), since.Seconds()-60*float64(int(since.Minutes())))
		text := l.text
		if l.actor != you {
			text = strings.TrimSpace(wrap(text, margin))
		}
		n.print("%s  %s %s\n", n.style.dim(moment), n.style.actor(l.actor), n.style.tone(l.tone, text))
	}
}

// passed prints the expectations that a chapter has met.
func (n *narrator) passed(expectations ...expectation) {
	for _, e := range expectations {
		n.print("%s\n", n.style.tone(good, "   ✓ "+strings.TrimSpace(wrap(e.what, "     "))))
	}
}

const (
	textWidth = 110
	// margin is as wide as the time and the actor.
	margin = "                       "
)

// wrap breaks text into lines of a readable length and indents each line.
func wrap(text, indent string) string {
	var wrapped strings.Builder
	for _, paragraph := range strings.Split(text, "\n") {
		width := 0
		for i, word := range strings.Fields(paragraph) {
			switch length := len([]rune(word)); {
			case i == 0:
				wrapped.WriteString(indent + word)
				width = len(indent) + length
			case width+1+length > textWidth:
				wrapped.WriteString("\n" + indent + word)
				width = len(indent) + length
			default:
				wrapped.WriteString(" " + word)
				width += 1 + length
			}
		}
		wrapped.WriteString("\n")
	}
	return strings.TrimSuffix(wrapped.String(), "\n")
}
