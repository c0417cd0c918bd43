// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // identities that kubeconfig can name
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
)

// Main runs the program for the arguments of the process, and returns the exit code. The
// version is empty unless a release was built.
func Main(version string) int {
	beSilent()
	called, args := calledAs(os.Args, os.Getenv)
	p := newProcess(called)
	info, _ := debug.ReadBuildInfo() // nil if there is none
	p.Version = program.VersionOf(version, info)
	return untilInterrupted(p, args)
}

// newProcess returns the program with the streams of the process.
func newProcess(called string) *program.Program {
	p := program.New(called, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	p.Out.Style, p.Err.Style = styleOf(os.Stdout), styleOf(os.Stderr)
	p.Size = func() (columns, rows int) {
		columns, rows, _ = term.GetSize(int(os.Stdout.Fd())) // 0 is not known
		return columns, rows
	}
	p.Asks = term.IsTerminal(int(os.Stdin.Fd()))
	return p
}

// untilInterrupted runs the program until it ends or gets a signal to end, and returns the
// exit code. A second signal ends the process at once.
func untilInterrupted(p *program.Program, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	defer program.KeepOutput(os.Stdin)()
	code := run(ctx, p, args)
	if errors.Is(ctx.Err(), context.Canceled) {
		return program.Interrupted
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

// run returns the exit code.
func run(ctx context.Context, p *program.Program, args []string) int {
	root := NewRoot(p)
	root.SetArgs(args)
	err := p.Explained(root.ExecuteContext(ctx))
	var end program.Exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &end):
		p.Fail(end.Err)
		return end.Code
	}
	p.Fail(err)
	return program.Failed
}
