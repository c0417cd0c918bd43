// SPDX-License-Identifier: Apache-2.0

package env

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// Running is a command that runs.
type Running struct {
	t        *testing.T
	command  *exec.Cmd
	out, err output
}

// output is what a command has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

// String returns what was written so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Start starts the program, and kills it at the end of the test if it still runs then.
func (c *CommandLine) Start(args ...string) *Running {
	c.t.Helper()
	r := &Running{t: c.t, command: c.command(exec.CommandContext(c.t.Context(), c.program, args...))}
	r.command.Stdout, r.command.Stderr = &r.out, &r.err
	if err := r.command.Start(); err != nil {
		c.t.Fatalf("start %q: %v", args, err)
	}
	return r
}

// Kill kills the program, which cannot do anything about it (SIGKILL).
func (r *Running) Kill() {
	if err := r.command.Process.Kill(); err != nil {
		r.t.Errorf("kill %s: %v", r.command, err)
	}
}

// AwaitText waits until the program has written a text, on stdout or stderr.
func (r *Running) AwaitText(text string) {
	r.t.Helper()
	Eventually(r.t, r.command.String()+" to say "+text, func() (bool, string) {
		said := r.Said()
		return strings.Contains(said, text), said
	})
}

// End waits until the program has ended. The exit code of a program that was killed is
// -1.
func (r *Running) End() Answer {
	r.t.Helper()
	_ = r.command.Wait() // the exit code says it
	return Answer{r.out.String(), r.err.String(), r.command.ProcessState.ExitCode()}
}

// Interrupt does what Ctrl-C does.
func (r *Running) Interrupt() {
	r.t.Helper()
	if err := r.command.Process.Signal(os.Interrupt); err != nil {
		r.t.Errorf("interrupt %s: %v", r.command, err)
	}
}

// Said returns what the program has written so far, first on stdout and then on stderr.
func (r *Running) Said() string { return r.out.String() + r.err.String() }
