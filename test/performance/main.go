// SPDX-License-Identifier: Apache-2.0

// Command performance measures what the controller costs, and how fast it is,
// with thousands of Rollouts on a real API server.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); errors.Is(err, flag.ErrHelp) {
		return
	} else if err != nil {
		fmt.Fprintln(os.Stderr, "performance:", err)
		stop()
		os.Exit(1)
	}
}

// profileSeconds is how long CPU profiles are, from the beginning of a wave.
const profileSeconds = 20

func run(ctx context.Context, args []string) error {
	ctrl.SetLogger(logr.Discard())
	var p plan
	var logs string
	flags := flag.NewFlagSet("performance", flag.ContinueOnError)
	flags.IntVar(&p.Rollouts, "rollouts", 1000, "How many Rollouts there are.")
	flags.IntVar(&p.Namespaces, "namespaces", 1, "Over how many namespaces they are spread.")
	flags.IntVar(&p.Waves, "waves", 1, "How many releases there are for all at once.")
	flags.IntVar(&p.Floor, "floor", 0, "For how many Rollouts a bare client makes the same writes, after each wave.")
	flags.IntVar(&p.Singles, "singles", 0, "How many releases there are for one Rollout at a time.")
	flags.IntVar(&p.Storm, "storm", 0, "How often each HealthCheck and gate changes; with a wave with a bake before.")
	flags.DurationVar(&p.Rest, "rest", 0, "How long nothing happens.")
	flags.StringVar(&logs, "logs", "", "The folder in which to keep a log file of each program.")
	flags.StringVar(&p.Profiles, "profiles", "", "The folder in which to keep profiles of the controller's first 20 seconds of each wave.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	path, err := scenario.BuildController(ctx, os.Stderr)
	if err != nil {
		return err
	}
	began := time.Now()
	b, err := newBench(ctx, setting{p.Rollouts, p.Namespaces, logs}, path, os.Stdout)
	if err != nil {
		return err
	}
	fmt.Println("made the fleet in", time.Since(began))
	m, err := b.measure(ctx, p)
	for _, f := range catalogue {
		if v, ok := m[f.key]; ok {
			fmt.Printf("%-50s %10.3f %s\n", f.title, v, f.unit)
		}
	}
	return errors.Join(err, b.close())
}
