// SPDX-License-Identifier: Apache-2.0

// Package limit holds the controller to the memory of the shipped Deployment, as the
// kubelet does.
package limit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

// Memory is the limit of the shipped Deployment, which is also its GOMEMLIMIT, in bytes.
const Memory = 128 << 20

// Limit kills a controller that needs more than Memory.
type Limit struct {
	// group is the folder of a cgroup with the limit. If it is empty, none could be made,
	// and a watchdog kills the controller.
	group string
	files string // the folder of the program that enters the group
}

// New makes a cgroup of whichever version this machine has, if this user may.
func New() (*Limit, error) {
	files, err := os.MkdirTemp("", "limit-*")
	if err != nil {
		return nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	l := &Limit{files: files}
	for _, version := range []struct {
		parent string
		limits map[string]string
	}{
		{"/sys/fs/cgroup/memory", map[string]string{"memory.limit_in_bytes": strconv.Itoa(Memory)}},
		{"/sys/fs/cgroup", map[string]string{"memory.max": strconv.Itoa(Memory), "memory.swap.max": "0"}},
	} {
		group := filepath.Join(version.parent, fmt.Sprintf("rollout-controller-%d", os.Getpid()))
		if os.Mkdir(group, 0o755) != nil {
			continue
		}
		if writeAll(group, version.limits) == nil {
			l.group = group
			break
		}
		_ = os.Remove(group)
	}
	return l, nil
}

func writeAll(folder string, contents map[string]string) error {
	for name, content := range contents {
		path := filepath.Join(folder, name)
		if _, err := os.Stat(path); err != nil { // the folder is of no cgroup, or of another version
			return fmt.Errorf("find %s: %w", path, err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return fmt.Errorf("set a limit: %w", err)
		}
	}
	return nil
}

// Env is the environment of the shipped Deployment that depends on its memory.
func Env() string { return fmt.Sprintf("GOMEMLIMIT=%d", Memory) }

// Enter returns the path of a program that enters the group and becomes the controller.
func (l *Limit) Enter(controller string) (string, error) {
	if l.group == "" {
		return controller, nil
	}
	path := filepath.Join(l.files, "controller")
	text := fmt.Sprintf("#!/bin/sh\necho $$ > %s/cgroup.procs && exec %s \"$@\"\n", l.group, controller)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		return "", fmt.Errorf("write the program that enters a cgroup: %w", err)
	}
	return path, nil
}

// Close removes the group, which must be empty.
func (l *Limit) Close() {
	if l.group != "" {
		_ = os.Remove(l.group)
	}
	_ = os.RemoveAll(l.files)
}

// String says who enforces the limit.
func (l *Limit) String() string {
	if l.group != "" {
		return "by the kernel"
	}
	return "by a watchdog"
}

// Watch kills the controller if it needs more memory than it has, unless the kernel does
// so, until ctx ends. Pages of the program's file do not count: the kernel drops them first.
func (l *Limit) Watch(ctx context.Context, controller *controlplane.Process) {
	for l.group == "" && ctx.Err() == nil {
		time.Sleep(5 * time.Millisecond)
		if now, err := controlplane.MemoryOf(controller.PID()); err == nil && now.Own > Memory {
			_ = controller.Kill()
		}
	}
}

// Killed returns how often the kernel has killed a process of the group; 0 if it does not
// count that.
func (l *Limit) Killed() int {
	for _, file := range []string{"memory.oom_control", "memory.events"} {
		content, err := os.ReadFile(filepath.Join(l.group, file))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(content)) {
			var n int
			if found, _ := fmt.Sscanf(line, "oom_kill %d", &n); found == 1 {
				return n
			}
		}
	}
	return 0
}
