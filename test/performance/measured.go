// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU time in /proc; Linux shows 100 of them per second
// everywhere.
const clockTick = 10 * time.Millisecond

// cpuOf is how much CPU time a process has had since it began, in user mode and
// in the kernel.
func cpuOf(pid int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of a process: %w", err)
	}
	// The second field is a name in parentheses, which may hold anything.
	fields := strings.Fields(string(content[bytes.LastIndexByte(content, ')')+1:]))
	const user, system = 14 - 3, 15 - 3
	var ticks int64
	for _, field := range []int{user, system} {
		n, err := strconv.ParseInt(fields[field], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the CPU time of a process: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * clockTick, nil
}

// peakOf is the most memory that a process has had resident, in bytes.
func peakOf(pid int) (int64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of a process: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		var kilobytes int64
		if n, _ := fmt.Sscanf(lines.Text(), "VmHWM: %d kB", &kilobytes); n == 1 {
			return kilobytes << 10, nil
		}
	}
	return 0, fmt.Errorf("process %d has no memory", pid)
}
