// SPDX-License-Identifier: Apache-2.0

// Command timings runs go test and then prints a table. For each package it shows the
// time that it took, the CPU time of its processes including the control plane's, how
// many control planes it started, and its longest tests:
//
//	go run ./test/cmd/timings -count=1 ./internal/controller/...
//
// All arguments are those of go test. The output of failed packages goes to standard
// error. The exit status is that of go test.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/cmd/internal/gotest"
	"github.com/fluxrollouts/rollout-controller/test/pace"
)

// usageVariable is an environment variable of a test. It names the folder for the CPU
// time of the test's package. If it is set, this command runs a test instead of go test.
const usageVariable = "TIMINGS_USAGE"

func main() {
	var err error
	if folder := os.Getenv(usageVariable); folder != "" {
		err = runTest(folder, os.Args[1:])
	} else {
		err = runSuites(os.Args[1:])
	}
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended) && ended.ExitCode() > 0:
		os.Exit(ended.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runSuites runs go test and prints the table and the pace of the machine.
func runSuites(args []string) error {
	folder, err := os.MkdirTemp("", "timings-*")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(folder) }()

	began, pacer := time.Now(), pace.New()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go pacer.Run(ctx)
	suites, failed := goTest(ctx, folder, args)
	measured, err := withUsage(suites, folder)
	if err != nil {
		return errors.Join(failed, err)
	}
	writeTable(os.Stdout, measured)
	took, err := pacer.Between(began, time.Now())
	if err == nil {
		fmt.Printf("\nIn all %s, at a pace of %.1f ms.\n", time.Since(began).Round(time.Second), took.Seconds()*1000)
	}
	return errors.Join(failed, err)
}

// goTest makes go test start each test program through this command.
func goTest(ctx context.Context, folder string, args []string) ([]gotest.Suite, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the folder of this command: %w", err)
	}
	test := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-exec", self}, args...)...)
	test.Env = append(os.Environ(), usageVariable+"="+folder, rootVariable+"="+root)
	test.Stderr = os.Stderr
	return gotest.Run(test, func(gotest.Suite) {})
}

func withUsage(suites []gotest.Suite, folder string) ([]timed, error) {
	measured := make([]timed, 0, len(suites))
	for _, s := range suites {
		fmt.Fprint(os.Stderr, s.Output)
		used, err := usageOf(filepath.Join(folder, fileName(s.Name)))
		if err != nil {
			return nil, err
		}
		measured = append(measured, timed{s, used})
	}
	return measured, nil
}
