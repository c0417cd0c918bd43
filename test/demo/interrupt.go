// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interruption is why a context ended: somebody wants this program to end.
type interruption struct{ signal syscall.Signal }

func (i interruption) Error() string { return i.String() }

func (i interruption) String() string {
	if i.signal == syscall.SIGINT {
		return "Ctrl-C"
	}
	return "a signal, " + i.signal.String()
}

// status is the exit status by which a shell tells such an end.
func (i interruption) status() int { return 128 + int(i.signal) }

// interruptible returns a context that ends when the user presses Ctrl-C, or
// the terminal or the reader of the output goes away. Further signals change
// nothing, so that a second Ctrl-C does not leave behind what the first one
// is cleaning up.
func interruptible(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	go func() {
		select {
		case s := <-signals:
			cancel(interruption{s.(syscall.Signal)})
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		signal.Stop(signals)
	}
}
