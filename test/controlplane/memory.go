// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Memory is the memory of a process, in bytes.
type Memory struct {
	// Own is the anonymous memory: the process has written it, and the kernel cannot drop
	// it.
	Own int64
	// Resident is the largest resident memory so far. It includes the program's own
	// pages.
	Resident int64
}

// MemoryOf reads the memory of a process from Linux.
func MemoryOf(pid int) (Memory, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, fmt.Errorf("read the memory of a process: %w", err)
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
		return Memory{}, fmt.Errorf("process %d has no memory", pid)
	}
	return Memory{Own: kilobytes["RssAnon"] << 10, Resident: kilobytes["VmHWM"] << 10}, nil
}

// Most returns the larger value of each field.
func (m Memory) Most(other Memory) Memory {
	return Memory{max(m.Own, other.Own), max(m.Resident, other.Resident)}
}

// Memory returns the memory of all processes that run.
func (c *ControlPlane) Memory() (Memory, error) {
	c.mu.Lock()
	processes := slices.Clone(c.processes)
	c.mu.Unlock()
	var total Memory
	for _, p := range processes {
		pid := p.PID()
		if pid == 0 {
			continue
		}
		memory, err := MemoryOf(pid)
		if err != nil {
			return Memory{}, err
		}
		total = total.Add(memory)
	}
	return total, nil
}

// Add returns the sum of each field.
func (m Memory) Add(other Memory) Memory {
	return Memory{m.Own + other.Own, m.Resident + other.Resident}
}
