// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strconv"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Reason is why a report is refused.
type Reason string

const (
	// TooLarge means that the envelope has more bytes than are read.
	TooLarge Reason = "TooLarge"
	// Unreadable means that it is not a report, or that it contradicts itself.
	Unreadable Reason = "Unreadable"
	// Unsigned means that nobody has signed it.
	Unsigned Reason = "Unsigned"
	// Untrusted means that no trusted key has signed it.
	Untrusted Reason = "Untrusted"
	// OtherSource means that it is about another environment than the expected one.
	OtherSource Reason = "OtherSource"
	// Outdated means that a newer report was verified before.
	Outdated Reason = "Outdated"
	// Ahead means that its number is far higher than it can be by now.
	Ahead Reason = "Ahead"
	// NewerFormat means that a newer version of the controller has written it.
	NewerFormat Reason = "NewerFormat"
)

// Refusal is the error that Verify returns. Only the owner of the upstream, or of the
// keys, can change it.
type Refusal struct {
	Reason Reason
	// Message continues the sentence "what staging says cannot be verified: ".
	Message string
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

func refuse(reason Reason, format string, arguments ...any) error {
	return &Refusal{Reason: reason, Message: fmt.Sprintf(format, arguments...)}
}

// quoted returns a text that others have written for a message.
func quoted(text string) string {
	const characters = 64
	return strconv.Quote(truncate.Text(text, characters))
}
