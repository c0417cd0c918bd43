// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

// machine describes the machine and the programs of a run.
type machine struct {
	Date      string
	Commit    string
	Took      time.Duration
	CPUs      int
	Processor string
	Memory    string
	Kernel    string
	Go        string
	Programs  string // the programs of the control plane
	Load      string // how many programs wanted to run in the minute before
}

// describe describes the machine of a run that began at the given time.
func describe(began time.Time, programs string) machine {
	return machine{
		Date:      began.UTC().Format(time.DateOnly),
		Commit:    commit(),
		Took:      time.Since(began).Round(time.Second),
		CPUs:      runtime.NumCPU(),
		Processor: fact("/proc/cpuinfo", "model name"),
		Memory:    gibibytes(memoryOfMachine()),
		Kernel:    strings.TrimSpace(read("/proc/sys/kernel/osrelease")),
		Go:        runtime.Version(),
		Programs:  programs,
	}
}

// load returns the mean number of programs that wanted to run in the last minute. Before a
// run it shows whether others use the machine.
func load() string {
	of, _, _ := strings.Cut(read("/proc/loadavg"), " ")
	return of
}

// commit returns the commit that is checked out, or "unknown" outside of a repository.
func commit() string {
	described := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*")
	described.Dir = parts.Root()
	text, err := described.Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

func read(path string) string {
	content, _ := os.ReadFile(path)
	return string(content)
}

// fact finds a line "key : value" in a file of /proc.
func fact(path, key string) string {
	lines := bufio.NewScanner(bytes.NewReader([]byte(read(path))))
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// memoryOfMachine returns the memory in kilobytes; 0 if it is not known.
func memoryOfMachine() (kilobytes int64) {
	_, _ = fmt.Sscanf(fact("/proc/meminfo", "MemTotal"), "%d kB", &kilobytes)
	return kilobytes
}

func gibibytes(kilobytes int64) string {
	if kilobytes == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%d GiB", kilobytes>>20)
}

// halfOfMemory returns half of the machine's memory as a value of GOMEMLIMIT.
func halfOfMemory() string {
	kilobytes := memoryOfMachine()
	if kilobytes == 0 {
		return "off"
	}
	return fmt.Sprintf("%dKiB", kilobytes/2)
}
