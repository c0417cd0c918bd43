// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// usage is the usage of a package's tests, including all processes that they waited for.
type usage struct {
	CPU    time.Duration
	Planes int
}

// rootVariable is an environment variable with the folder where the command was started.
const rootVariable = "TIMINGS_ROOT"

// planesVariable is an environment variable of a test. It names a file to which each
// started control plane adds a byte. test/controlplane uses the same name.
const planesVariable = "CONTROLPLANE_STARTS"

// runTest runs a test program and stores its usage. It forwards signals that would end
// this process, such as go test's signal after a timeout, to the program.
func runTest(folder string, args []string) error {
	name, err := packageFolder()
	if err != nil {
		return err
	}
	planes := filepath.Join(folder, fileName(name)+".planes")
	test := exec.Command(args[0], args[1:]...)
	test.Env = append(os.Environ(), planesVariable+"="+planes)
	test.Stdin, test.Stdout, test.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM)
	if err := test.Start(); err != nil {
		return fmt.Errorf("start a test: %w", err)
	}
	go func() {
		for s := range signals {
			_ = test.Process.Signal(s)
		}
	}()
	err = test.Wait()
	started, _ := os.ReadFile(planes)
	used := usage{CPU: test.ProcessState.UserTime() + test.ProcessState.SystemTime(), Planes: len(started)}
	return errors.Join(err, note(filepath.Join(folder, fileName(name)), used))
}

// packageFolder returns the folder of the package under test, relative to the folder
// where the command was started.
func packageFolder() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the folder of the test: %w", err)
	}
	return filepath.Rel(os.Getenv(rootVariable), here)
}

func fileName(folder string) string { return strings.ReplaceAll(folder, "/", "_") }

func note(path string, used usage) error {
	content, err := json.Marshal(used)
	if err != nil {
		return fmt.Errorf("note what a test used: %w", err)
	}
	return os.WriteFile(path, content, 0o600)
}

// usageOf returns the stored usage. It is zero if no test of the package ran.
func usageOf(path string) (used usage, err error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return used, nil
	}
	if err != nil {
		return used, fmt.Errorf("read what a test used: %w", err)
	}
	return used, json.Unmarshal(content, &used)
}
