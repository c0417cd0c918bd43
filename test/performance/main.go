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

func run(ctx context.Context, args []string) error {
	ctrl.SetLogger(logr.Discard())
	var s setting
	flags := flag.NewFlagSet("performance", flag.ContinueOnError)
	flags.IntVar(&s.rollouts, "rollouts", 1000, "How many Rollouts there are.")
	flags.IntVar(&s.namespaces, "namespaces", 1, "Over how many namespaces they are spread.")
	flags.DurationVar(&s.bake, "bake", 0, "The bake time; 0 for no bake and no HealthChecks.")
	flags.StringVar(&s.logs, "logs", "", "The folder in which to keep a log file of each program.")
	waves := flags.Int("waves", 2, "How often there is a release for all at once, after the first one.")
	profiles := flags.String("profiles", "", "The folder in which to keep profiles of the controller, if it serves any.")
	seconds := flags.Int("seconds", 15, "How long CPU profiles are, from the beginning of a wave.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	path, err := scenario.BuildController(ctx, os.Stderr)
	if err != nil {
		return err
	}
	b, err := newBench(ctx, s, path, os.Stdout)
	if err != nil {
		return err
	}
	err = trial(ctx, b, *waves, *profiles, *seconds)
	return errors.Join(err, b.close())
}

func trial(ctx context.Context, b *bench, waves int, profiles string, seconds int) error {
	if err := b.begin(ctx); err != nil {
		return err
	}
	fmt.Println("begun")
	d, err := b.duel(ctx, waves)
	if err != nil {
		return err
	}
	for i, w := range d.waves {
		fl := d.floors[i]
		fmt.Println(w.release.tag, "targets", w.targets(), "floor", fl.targets(), "all", w.all(), "floor", fl.all(), "cpu", d.costs[i].cpu, d.costs[i].requests,
			percentile(w.latencies(), 50), percentile(w.latencies(), 99), percentile(fl.latencies(), 50), percentile(fl.latencies(), 99))
	}
	_, spent, err := b.releaseFor(ctx, b.everyone())
	fmt.Println("again", spent, err)
	fmt.Println(b.rest(ctx, 5*time.Second))
	fmt.Println(b.protect(ctx, 2*time.Second))
	w, spent, err := b.releaseFor(ctx, b.everyone())
	fmt.Println("baked", w.targets(), w.all(), spent, err)
	l, err := b.singles(ctx, 20)
	fmt.Println("singles", percentile(l, 50), percentile(l, 99), err)
	fmt.Println(b.storm(ctx, 2))
	fmt.Println(b.restart(ctx))
	fmt.Println(b.notePeak(), b.peak>>20)
	return nil
}
