// SPDX-License-Identifier: Apache-2.0

// Command deflake runs go test again and again under bad conditions: all processors are
// busy, and the processes of every control plane are stopped and continued at random
// (test/controlplane/stalls.go). It reports how often each package passed and which tests
// failed, and stores the output of failed packages:
//
//	go run ./test/cmd/deflake -runs 10 -- -vet=off ./test/e2e/workloads
//
// The arguments after the flags are flags of go test, with = before their values, and
// packages. No run waits for the end of the previous one: when a package has ended, the
// next one starts. The exit status is 1 if any package failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fluxrollouts/rollout-controller/test/cmd/internal/gotest"
)

type options struct {
	runs   int
	atOnce int
	busy   int
	stalls time.Duration
	keep   string
	args   []string
}

func main() {
	var o options
	flag.IntVar(&o.runs, "runs", 10, "how often to run each package")
	flag.IntVar(&o.atOnce, "p", 4, "how many packages to run at a time")
	flag.IntVar(&o.busy, "busy", runtime.NumCPU(), "how many processors to keep busy")
	flag.DurationVar(&o.stalls, "stalls", 200*time.Millisecond, "for how long at most a process of a control plane is stopped; 0 stops none")
	flag.StringVar(&o.keep, "keep", filepath.Join("bin", "deflake"), "the folder that gets what failed")
	flag.Parse()
	o.args = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (o options) run(ctx context.Context) error {
	flags, packages, err := o.arguments(ctx)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	for range o.busy {
		go spin(ctx)
	}
	all := newTally()
	var workers errgroup.Group
	workers.SetLimit(o.atOnce)
	for n := 1; n <= o.runs; n++ {
		for _, p := range packages {
			workers.Go(func() error { return o.once(ctx, n, append(flags[:len(flags):len(flags)], p), all) })
		}
	}
	err = workers.Wait()
	all.write(os.Stdout)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && all.failed():
		return fmt.Errorf("the output of the failed packages is in %s", o.keep)
	}
	return err
}

// arguments returns the flags for go test and the import paths of the packages.
func (o options) arguments(ctx context.Context) (flags, packages []string, err error) {
	list := []string{"list"}
	for _, arg := range o.args {
		if strings.HasPrefix(arg, "-") {
			flags = append(flags, arg)
		} else {
			list = append(list, arg)
		}
	}
	listed, err := exec.CommandContext(ctx, "go", list...).Output()
	if err != nil {
		return nil, nil, fmt.Errorf("list the packages: %w", err)
	}
	return flags, strings.Fields(string(listed)), nil
}

// spin keeps a processor busy.
func spin(ctx context.Context) {
	for ctx.Err() == nil {
		for range 1_000_000 {
			runtime.KeepAlive(ctx)
		}
	}
}

// once runs a package. A failed test is not an error. A package that cannot run is an
// error.
func (o options) once(ctx context.Context, n int, args []string, all *tally) error {
	if ctx.Err() != nil {
		return nil
	}
	test := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-count=1", "-shuffle=on"}, args...)...)
	test.Cancel = func() error { return test.Process.Signal(os.Interrupt) }
	if test.Env = os.Environ(); o.stalls > 0 {
		test.Env = append(test.Env, "CONTROLPLANE_STALLS="+o.stalls.String())
	}
	test.Stderr = os.Stderr
	suites, err := gotest.Run(test, func(gotest.Suite) {})
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return nil // an interrupted package has neither passed nor failed
	case len(suites) == 0:
		return fmt.Errorf("no test ran: %w", err)
	case err != nil && !errors.As(err, &failed):
		return fmt.Errorf("run go test: %w", err)
	}
	for _, s := range suites {
		all.add(s)
		o.report(n, s)
	}
	return nil
}

// report prints the result of a package, and stores the output of a failed one.
func (o options) report(n int, s gotest.Suite) {
	result := "ok  "
	if s.Failed {
		result = "FAIL"
		if err := o.store(n, s); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	fmt.Printf("%s  %s, run %d of %d, in %s\n", result, s.Name, n, o.runs, s.Took.Round(time.Second))
}

// store stores the output of a package in a run.
func (o options) store(n int, s gotest.Suite) error {
	if err := os.MkdirAll(o.keep, 0o755); err != nil {
		return fmt.Errorf("make a folder for what failed: %w", err)
	}
	name := fmt.Sprintf("%s-%d.log", strings.ReplaceAll(s.Name, "/", "-"), n)
	return os.WriteFile(filepath.Join(o.keep, name), []byte(s.Output), 0o600)
}
