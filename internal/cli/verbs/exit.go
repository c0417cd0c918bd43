// SPDX-License-Identifier: Apache-2.0

package verbs

import "fmt"

// Exit codes of all verbs. They depend on the answer alone, and not on its format.
const (
	// failed: the command could not answer: wrong use, nothing found, no rights, no
	// connection.
	failed = 1
	// no: the answer is no: held, findings, differences, nothing to change.
	no = 2
	// otherwise: what was waited for cannot happen any more.
	otherwise = 3
	// timeRanOut: what was waited for may still happen.
	timeRanOut = 4
	// interrupted: by the user, as shells say it for SIGINT.
	interrupted = 130
)

// exit ends the program with a code.
type exit struct {
	code int
	// err is said at the end; nil if all was said.
	err error
}

func (e exit) Error() string { return fmt.Sprintf("exit %d: %v", e.code, e.err) }

// refuse ends the program because the answer is no.
func refuse(format string, args ...any) error {
	return exit{no, fmt.Errorf(format, args...)}
}
