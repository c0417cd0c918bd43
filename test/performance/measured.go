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

// memory is what a process has in memory, in bytes.
type memory struct {
	own      int64 // what it has written, and the kernel cannot drop
	resident int64 // the most so far, with the pages of the program
}

func memoryOf(pid int) (memory, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return memory{}, fmt.Errorf("read the memory of a process: %w", err)
	}
	kilobytes := map[string]int64{}
	for lines := bufio.NewScanner(bytes.NewReader(content)); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		var n int64
		if found, _ := fmt.Sscanf(value, "%d kB", &n); found == 1 {
			kilobytes[key] = n
		}
	}
	if kilobytes["VmHWM"] == 0 {
		return memory{}, fmt.Errorf("process %d has no memory", pid)
	}
	return memory{own: kilobytes["RssAnon"] << 10, resident: kilobytes["VmHWM"] << 10}, nil
}

// most is the larger of each.
func (m memory) most(other memory) memory {
	return memory{max(m.own, other.own), max(m.resident, other.resident)}
}
