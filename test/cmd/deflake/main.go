// SPDX-License-Identifier: Apache-2.0

// Command deflake runs go test again and again while the machine is made as bad as
// it can be: all processors are busy, and the processes of every control plane are
// stopped and woken at random (test/controlplane/stalls.go). It says which tests
// failed how often, and keeps what they printed:
//
//	go run ./test/cmd/deflake -runs 10 -- ./test/e2e/workloads
//
// What comes after the flags are the arguments of go test. The exit status is 1 if
// any run failed.
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

	"github.com/fluxrollouts/rollout-controller/test/cmd/internal/gotest"
)

type options struct {
	runs   int
	busy   int
	stalls time.Duration
	keep   string
	args   []string
}

func main() {
	var o options
	flag.IntVar(&o.runs, "runs", 10, "how often to run the tests")
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
	ctx, end := context.WithCancel(ctx)
	defer end()
	for range o.busy {
		go spin(ctx)
	}
	all := tally{}
	for n := 1; n <= o.runs && ctx.Err() == nil; n++ {
		began := time.Now()
		suites, err := o.once(ctx, func(s gotest.Suite) { o.report(n, s) })
		if err != nil {
			return err
		}
		failed := all.add(suites)
		fmt.Printf("run %d of %d: %d packages, %d failed, in %s\n", n, o.runs, len(suites), len(failed), time.Since(began).Round(time.Second))
	}
	all.write(os.Stdout)
	if len(all) > 0 {
		return fmt.Errorf("what failed is in %s", o.keep)
	}
	return ctx.Err()
}

// spin keeps a processor busy.
func spin(ctx context.Context) {
	for ctx.Err() == nil {
		for range 1_000_000 {
			runtime.KeepAlive(ctx)
		}
	}
}

// once runs all tests. That some failed is no error; that none could run is.
func (o options) once(ctx context.Context, ended func(gotest.Suite)) ([]gotest.Suite, error) {
	test := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-count=1", "-shuffle=on"}, o.args...)...)
	test.Cancel = func() error { return test.Process.Signal(os.Interrupt) }
	if test.Env = os.Environ(); o.stalls > 0 {
		test.Env = append(test.Env, "CONTROLPLANE_STALLS="+o.stalls.String())
	}
	test.Stderr = os.Stderr
	suites, err := gotest.Run(test, ended)
	var failed *exec.ExitError
	switch {
	case len(suites) == 0:
		return nil, fmt.Errorf("no test ran: %w", errors.Join(err, ctx.Err()))
	case err != nil && !errors.As(err, &failed):
		return nil, fmt.Errorf("run go test: %w", err)
	}
	return suites, nil
}

// report says how a package did in a run, and keeps what one printed that failed.
func (o options) report(n int, s gotest.Suite) {
	result := "ok  "
	if s.Failed {
		result = "FAIL"
		if err := o.store(n, s); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	fmt.Printf("%s  %s in %s\n", result, s.Name, s.Took.Round(time.Second))
}

// store keeps what a package printed in a run.
func (o options) store(n int, s gotest.Suite) error {
	if err := os.MkdirAll(o.keep, 0o755); err != nil {
		return fmt.Errorf("make a folder for what failed: %w", err)
	}
	name := fmt.Sprintf("%s-%d.log", strings.ReplaceAll(s.Name, "/", "-"), n)
	return os.WriteFile(filepath.Join(o.keep, name), []byte(s.Output), 0o600)
}
