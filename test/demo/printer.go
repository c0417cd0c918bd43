// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

// speakEvery is how long a step of the preparations may print nothing.
const speakEvery = 10 * time.Second

// printer writes what happens. All output goes through it. Thus lines of several goroutines
// never mix.
type printer struct {
	style style
	begun time.Time

	mu   sync.Mutex
	out  io.Writer
	last time.Time

	lost func() // called if nobody reads the output any more
}

func newPrinter(out *os.File) *printer {
	now := time.Now()
	return &printer{style: styleFor(out), begun: now, out: out, last: now, lost: func() {}}
}

// Write passes on the output of the builds.
func (p *printer) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Now()
	n, err := p.out.Write(text)
	if errors.Is(err, syscall.EPIPE) {
		p.lost()
	}
	return n, err
}

func (p *printer) print(format string, args ...any) {
	_, _ = fmt.Fprintf(p, format, args...)
}

// note prints a line that is not part of the scenario.
func (p *printer) note(format string, args ...any) {
	p.print("%s\n", fmt.Sprintf(format, args...))
}

// during runs a step of the preparations. It prints when the step begins, that it
// continues if nothing else was printed for a while, and how long it took.
func (p *printer) during(what string, step func() error) error {
	begun := time.Now()
	p.note("%s %s...", p.style.dim("==>"), what)
	done := make(chan error, 1)
	go func() { done <- step() }()
	for {
		select {
		case err := <-done:
			if err == nil {
				p.note("    done in %s", time.Since(begun).Round(100*time.Millisecond))
			}
			return err
		case <-time.After(speakEvery):
			p.stillAtIt(what, begun)
		}
	}
}

func (p *printer) stillAtIt(what string, begun time.Time) {
	p.mu.Lock()
	silent := time.Since(p.last)
	p.mu.Unlock()
	if silent >= speakEvery {
		p.note("    %s: still at it, for %s", what, time.Since(begun).Round(time.Second))
	}
}

// begin sets the beginning of the scenario to now.
func (p *printer) begin() { p.begun = time.Now() }

// step begins a step.
func (p *printer) step(number int, title, intro string) {
	p.print("\n%s\n", p.style.bold(fmt.Sprintf("%d. %s", number, title)))
	p.print("%s\n\n", wrap(intro, "   "))
}

// show prints lines, each after the time and the actor.
func (p *printer) show(lines ...line) {
	for _, l := range lines {
		since := time.Since(p.begun)
		moment := fmt.Sprintf("%02d:%04.1f", int(since.Minutes()), since.Seconds()-60*float64(int(since.Minutes())))
		text := l.text
		if l.actor != you {
			text = strings.TrimSpace(wrap(text, margin))
		}
		p.print("%s  %s %s\n", p.style.dim(moment), p.style.actor(l.actor), p.style.tone(l.tone, text))
	}
}

// passed prints the expectations that a step has met.
func (p *printer) passed(expectations ...expectation) {
	for _, e := range expectations {
		p.print("%s\n", p.style.tone(good, "   ✓ "+strings.TrimSpace(wrap(e.what, "     "))))
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
