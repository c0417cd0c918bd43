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
// terminal closes, and a function that ends it as a signal does. Further signals have no
// effect. Thus a second Ctrl-C does not interrupt the cleanup after the first.
//
// SIGPIPE ends nothing: it is also sent if a server closes a connection. Without the
// registration it would end the program at once if nobody reads the output.
func interruptible(parent context.Context) (ctx context.Context, interrupt func(syscall.Signal), release func()) {
	ctx, cancel := context.WithCancelCause(parent)
	interrupt = func(by syscall.Signal) { cancel(interruption{by}) }
	signals, ignored := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	signal.Notify(ignored, syscall.SIGPIPE)
	go func() {
		select {
		case s := <-signals:
			interrupt(s.(syscall.Signal))
		case <-ctx.Done():
		}
	}()
	return ctx, interrupt, func() {
		cancel(nil)
		signal.Stop(signals)
		signal.Stop(ignored)
	}
}
