// SPDX-License-Identifier: Apache-2.0

// Package verdict has the words in which everything that is judged is answered: why a
// release is held, what could not be read, and what is worth reporting once. It also says
// of each reason what holds a release for it.
package verdict

import (
	"strings"
	"time"
)

// Hold is one reason why a candidate is not promoted now.
type Hold struct {
	// Reason is one of the v1alpha1 reasons.
	Reason string
	// Message says what holds the candidate, and what would end the hold.
	Message string
	// OfGates is true if gates hold the candidate for a reason that may also be another's.
	OfGates bool
	// Until is when time alone ends the hold; zero means never.
	Until time.Time
	// Changes is when time alone changes the message; zero means never.
	Changes time.Time
}

// Next returns when time alone first changes something; zero means never.
func (h Hold) Next() time.Time { return Earlier(h.Until, h.Changes) }

// Problem describes what could not be read or evaluated, and what to do about it.
type Problem struct {
	// Reason is one of the v1alpha1 reasons.
	Reason string
	// Message for users.
	Message string
}

// Hold returns the problem as what holds a release; nil if there is none.
func (p *Problem) Hold() *Hold {
	if p == nil {
		return nil
	}
	return &Hold{Reason: p.Reason, Message: p.Message}
}

// Note is a fact that is worth reporting once.
type Note struct {
	// Reason is one of the v1alpha1 reasons.
	Reason string
	// Message for users.
	Message string
}

// Earlier returns the first of two times. Zero means never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Waiting returns a sentence about a release that waits, given what holds it.
func Waiting(release, hold string) string {
	if strings.HasPrefix(hold, "waits for ") {
		return release + " " + hold
	}
	return release + " waits: " + hold
}
