// SPDX-License-Identifier: Apache-2.0

// Command demo shows some releases on a real control plane: real Flux, a
// real Kubernetes API and the controller as it is installed. It needs only Go.
//
//	go run ./test/demo                     stays up for the user until Ctrl-C
//	go run ./test/demo --once              ends by itself
//	go run ./test/demo --scenario=workloads   shows what happens inside one release
//
// The exit status is 0 only if the scenario had the expected result.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
)

func main() {
	os.Exit(run(os.Args[1:]))
}

// run runs the demo and returns the exit status.
func run(args []string) int {
	var d demo
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.BoolVar(&d.once, "once", false, "End after the last step, instead of staying up until Ctrl-C.")
	name := flags.String("scenario", releases, "The scenario to show: "+strings.Join(slices.Sorted(maps.Keys(scripts)), " or ")+".")
	flags.StringVar(&d.logDir, "logs", "", "The folder in which to keep a log file of each program.")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	var known bool
	if d.script, known = scripts[*name]; !known {
		fmt.Fprintf(os.Stderr, "demo: there is no scenario %q\n", *name)
		return 2
	}
	ctx, interrupt, release := interruptible(context.Background())
	defer release()
	d.printer = newPrinter(os.Stdout)
	d.lost = func() { interrupt(syscall.SIGPIPE) }
	err := d.play(ctx)
	return d.exitStatus(ctx, err)
}

// exitStatus returns the exit status and prints why the demo ended. An interruption is
// not a failure of the scenario.
func (d *demo) exitStatus(ctx context.Context, err error) int {
	var by interruption
	switch {
	case d.leftBehind != nil:
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", errors.Join(d.leftBehind, err))
		return 1
	case errors.As(context.Cause(ctx), &by):
		d.note("Stopped by %s; nothing is left running.", by)
		return by.status()
	case err != nil:
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		return 1
	}
	return 0
}
