// SPDX-License-Identifier: Apache-2.0

package program

import "fmt"

// Exit codes of all verbs. They depend on the answer alone, and not on its format. A change
// ends with 0 if what it asks for is so, also if it was so before.
const (
	// Failed: the command could not answer: wrong use, no object of a name that was given,
	// no rights, no connection, nobody to ask.
	Failed = 1
	// No: the answer is no: held, findings, differences, a change that is refused, by the
	// engine or by the user.
	No = 2
	// Otherwise: what was waited for cannot happen any more.
	Otherwise = 3
	// TimeRanOut: what was waited for may still happen.
	TimeRanOut = 4
	// Interrupted: by the user, as shells say it for SIGINT.
	Interrupted = 130
)

// Exit ends the program with a code.
type Exit struct {
	Code int
	// Err is said at the end; nil if all was said.
	Err error
}

func (e Exit) Error() string { return fmt.Sprintf("exit %d: %v", e.Code, e.Err) }

// Refuse ends the program because the answer is no.
func Refuse(format string, args ...any) error {
	return Exit{No, fmt.Errorf(format, args...)}
}
