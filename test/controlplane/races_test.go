// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// racer writes one variable from two goroutines, and then waits to be killed.
const racer = `package main

import "os"

func main() {
	writers, done := "", make(chan struct{})
	go func() {
		writers += "one"
		close(done)
	}()
	writers += "another"
	<-done
	os.Stdout.WriteString("written by " + writers)
	select {}
}
`

func TestStopReportsADataRaceInAProgramThatWasKilled(t *testing.T) {
	program := buildRacer(t)
	c, err := prepare(Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	process, err := c.StartProcess("racer", program, nil, []string{"A=b"})
	if err != nil {
		t.Fatal(err)
	}
	for printed := ""; !strings.Contains(printed, "written"); time.Sleep(10 * time.Millisecond) {
		log, err := os.ReadFile(process.LogFile)
		if printed = string(log); err != nil || !process.Running() {
			t.Fatalf("the program ended: %v\n%s", err, printed)
		}
	}
	err = c.Stop()
	if err == nil || !strings.Contains(err.Error(), "a data race in racer.") || !strings.Contains(err.Error(), "main.main.func1()") {
		t.Errorf("stopping said: %v", err)
	}
}

func buildRacer(t *testing.T) string {
	t.Helper()
	compiler, err := exec.CommandContext(t.Context(), "go", "env", "CC").Output()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath(strings.TrimSpace(string(compiler))); err != nil {
		t.Skip("the race detector needs a C compiler")
	}
	source, program := filepath.Join(t.TempDir(), "racer.go"), filepath.Join(t.TempDir(), "racer")
	if err := os.WriteFile(source, []byte(racer), 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-race", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	if printed, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	return program
}
