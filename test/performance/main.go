// SPDX-License-Identifier: Apache-2.0

// Command performance measures the cost and the speed of the controller with thousands of
// Rollouts on a real API server. Flux is simulated.
//
//	go run ./test/performance                                 the whole, fifty to ninety minutes
//	go run ./test/performance -fleets 1000/1 -profiles out    one fleet, with profiles
//	go run ./test/performance -fleets 100/1 -only environments
//	go run ./test/performance -fleets 100/1 -only measurements
//
// The exit status is 0 only if all figures are in the ranges of ranges.yaml.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "performance:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	ctrl.SetLogger(logr.Discard())
	debug.SetGCPercent(generousGC) // the benchmark itself must use little CPU
	r := runner{progress: os.Stdout, plans: whole}
	flags := flag.NewFlagSet("performance", flag.ContinueOnError)
	fleets := flags.String("fleets", "", "Only these fleets, as rollouts/namespaces with commas between, such as 1000/1,10000/100.")
	only := flags.String("only", "", "Only these scenarios, with commas between: "+strings.Join(scenarios, ", ")+". Restart and memory are always measured.")
	flags.StringVar(&r.logs, "logs", "", "The folder in which to keep a log file of each program.")
	flags.StringVar(&r.profiles, "profiles", "", "The folder in which to keep profiles of the controller: CPU from the beginning of each wave, and memory.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := errors.Join(r.choose(*fleets), r.only(*only)); err != nil {
		return err
	}
	return r.run(ctx)
}
