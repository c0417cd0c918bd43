// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestProgramIsMeasuredFromItsStart(t *testing.T) {
	// It fills 64 MiB of memory, and waits for a file between its two lines.
	const program = `echo first; read -r line <"$PIPE"; big=$(head -c 67108864 /dev/zero | tr '\0' x); echo "$line"`
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	const wait = 50 * time.Millisecond
	go func() {
		time.Sleep(wait) // the time that is to be measured
		_ = os.WriteFile(pipe, []byte("second\n"), 0o600)
	}()
	got, err := runProgram(t.Context(), []string{"PIPE=" + pipe}, "/bin/sh", "-c", program)
	if err != nil {
		t.Fatal(err)
	}
	if got.first <= 0 || got.whole < got.first+wait/2 {
		t.Errorf("the first byte came after %s, the end after %s", got.first, got.whole)
	}
	if got.memory < 64 || got.lines != 2 {
		t.Errorf("it had %.0f MiB and %d lines, want at least 64 MiB and 2 lines", got.memory, got.lines)
	}
}

func TestProgramThatFailsIsAnErrorWithWhatItSaid(t *testing.T) {
	_, err := runProgram(t.Context(), nil, "/bin/sh", "-c", "echo no such Rollout >&2; exit 1")
	if err == nil || !strings.Contains(err.Error(), "no such Rollout") {
		t.Errorf("got error %v", err)
	}
}
