// SPDX-License-Identifier: Apache-2.0

// Command cli answers three questions about Rollouts: what runs, why is my release not
// out, and what happens if I do this. Every answer comes from package promotion, as every
// decision of the controller does.
//
// It is one program with three names. As kubectl-rollouts on the PATH it is "kubectl
// rollouts", as flux-rollout in the plugins of Flux it is "flux rollout", and as
// kubectl_complete-rollouts it completes commands for kubectl.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // identities that kubeconfig can name
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
)

func main() {
	beSilent()
	called, args := calledAs(os.Args, os.Getenv)
	os.Exit(newProcess(called).untilInterrupted(args))
}

// newProcess returns the program with the streams of the process.
func newProcess(called string) *program {
	p := newProgram(called, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	p.out.Style, p.err.Style = styleOf(os.Stdout), styleOf(os.Stderr)
	p.size = func() (columns, rows int) {
		columns, rows, _ = term.GetSize(int(os.Stdout.Fd())) // 0 is not known
		return columns, rows
	}
	p.asks = term.IsTerminal(int(os.Stdin.Fd()))
	return p
}

// untilInterrupted runs the program until it ends or gets a signal to end, and returns the
// exit code. A second signal ends the process at once.
func (p *program) untilInterrupted(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	defer keepOutput(os.Stdin)()
	code := p.run(ctx, args)
	if errors.Is(ctx.Err(), context.Canceled) {
		return interrupted
	}
	return code
}

// beSilent discards the logs of libraries. They repeat requests that failed, and log each
// of them; this program says it once.
func beSilent() {
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
}

func styleOf(file *os.File) show.Style {
	width, _, err := term.GetSize(int(file.Fd()))
	return show.StyleOf(err == nil, width, os.Getenv)
}

// realClock is the only place where the program reads the clock.
func realClock() time.Time { return time.Now() }
