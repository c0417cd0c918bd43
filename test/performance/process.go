// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

// call is what one run of a program took.
type call struct {
	first, whole time.Duration // from the start to the first byte, and to the end
	memory       float64       // the most resident memory, in mebibytes
	lines        int           // of its output
}

// glance is how often the memory of a short process is read. The kernel keeps the most of
// it, so only what is added in the last moment is missed.
//
// The most memory that the kernel reports for an ended process is of no use: it includes
// that of the process that started it.
const glance = 2 * time.Millisecond

// runProgram runs a program to its end. It is an error if the program fails.
func runProgram(ctx context.Context, environment []string, path string, args ...string) (call, error) {
	var complaints bytes.Buffer
	out := &stopwatch{}
	program := exec.CommandContext(ctx, path, args...)
	program.Env, program.Stdout, program.Stderr = append(os.Environ(), environment...), out, &complaints
	out.began = time.Now()
	if err := program.Start(); err != nil {
		return call{}, fmt.Errorf("start %s: %w", program, err)
	}
	ended, watched := make(chan struct{}), make(chan int64, 1)
	go func() { watched <- residentUntil(ended, program.Process.Pid) }()
	err := program.Wait()
	whole := time.Since(out.began)
	close(ended)
	resident := <-watched
	if err != nil {
		return call{}, fmt.Errorf("%s: %w\n%s", program, err, complaints.Bytes())
	}
	return call{out.first, whole, float64(resident) / mebi, out.lines}, nil
}

// residentUntil returns the most resident memory of a process, in bytes.
func residentUntil(ended <-chan struct{}, pid int) int64 {
	var most int64
	for {
		if now, err := controlplane.MemoryOf(pid); err == nil {
			most = max(most, now.Resident)
		}
		select {
		case <-ended:
			return most
		case <-time.After(glance):
		}
	}
}

// stopwatch notes when the first byte is written to it, and counts lines.
type stopwatch struct {
	began time.Time
	first time.Duration
	lines int
}

func (s *stopwatch) Write(text []byte) (int, error) {
	if s.first == 0 {
		s.first = time.Since(s.began)
	}
	s.lines += bytes.Count(text, []byte("\n"))
	return len(text), nil
}
