// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of CPU time in /proc. Linux always shows 100 of them per second.
const clockTick = 10 * time.Millisecond

// cpuOf returns the CPU time of a process since it began, in user mode and in the kernel.
func cpuOf(pid int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of a process: %w", err)
	}
	// The second field is a name in parentheses, which may contain any characters.
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
