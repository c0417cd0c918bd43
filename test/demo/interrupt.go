// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// interruption is the cause of a context that a signal to this program ended.
type interruption struct{ signal syscall.Signal }

func (i interruption) Error() string { return i.String() }

func (i interruption) String() string {
	if i.signal == syscall.SIGINT {
		return "Ctrl-C"
	}
	return "a signal, " + i.signal.String()
}

// status is the exit status that a shell uses for such an end.
func (i interruption) status() int { return 128 + int(i.signal) }

// interruptible returns a context that ends when the user presses Ctrl-C, or when the
// terminal or the reader of the output closes. Further signals have no effect. Thus a
// second Ctrl-C does not interrupt the cleanup after the first.
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
