// SPDX-License-Identifier: Apache-2.0

package parts

import (
	"fmt"
	"io"
	"time"
)

// reportEvery is how long a build may print nothing.
const reportEvery = 15 * time.Second

// report prints the progress of one step of a longer task.
type report struct {
	out   io.Writer
	what  string
	begun time.Time // of the whole task
}

// during runs the step. It reports when the step begins, that it continues, and when it
// is done.
func (r report) during(step func() error) error {
	own := time.Now()
	r.say("building")
	done := make(chan error, 1)
	go func() { done <- step() }()
	for {
		select {
		case err := <-done:
			if err == nil {
				r.say("done in %s", seconds(own))
			}
			return err
		case <-time.After(reportEvery):
			r.say("still building, for %s", seconds(own))
		}
	}
}

func (r report) say(format string, args ...any) {
	fmt.Fprintf(r.out, "%s: %s (%s in all)\n", r.what, fmt.Sprintf(format, args...), seconds(r.begun))
}

func seconds(since time.Time) time.Duration {
	return time.Since(since).Round(time.Second)
}
