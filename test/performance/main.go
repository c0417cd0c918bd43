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
	"slices"
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
	w := newWave(release{tag: releaseTag(0)}, b.everyone()...)
	w.named[0] = time.Now()
	for i := range w.named {
		w.named[i] = w.named[0]
	}
	b.observer.follow(w)
	if err := b.start(ctx); err != nil {
		return err
	}
	for n := 0; ; n++ {
		if err := b.converge(ctx, w); err != nil {
			return err
		}
		u, err := b.program.usage()
		if err != nil {
			return err
		}
		latencies := w.latencies()
		slices.Sort(latencies)
		fmt.Printf("%s: targets %s, all %s, p50 %s, p99 %s, CPU so far %s, peak %d MiB\n", w.release.tag, w.targets().Round(time.Millisecond), w.all().Round(time.Millisecond),
			latencies[len(latencies)/2].Round(time.Millisecond), latencies[len(latencies)*99/100].Round(time.Millisecond), u.cpu, u.peak>>20)
		if n == waves {
			return nil
		}
		time.Sleep(2 * time.Second)
		w = newWave(b.publish(), b.everyone()...)
		b.observer.follow(w)
		profiled := make(chan error, 1)
		go func() {
			if profiles == "" {
				profiled <- nil
				return
			}
			profiled <- b.profiles(ctx, profiles, w.release.tag, seconds)
		}()
		if err := b.name(ctx, w, func(int) {}); err != nil {
			return err
		}
		if err := b.converge(ctx, w); err != nil {
			return err
		}
		if err := <-profiled; err != nil {
			fmt.Println(err)
		}
	}
}
