// SPDX-License-Identifier: Apache-2.0

package abuse

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

// limit holds the controller to the memory of the shipped Deployment, as the kubelet does:
// a controller that needs more is killed.
type limit struct {
	// group is the folder of a cgroup with the limit. If it is empty, none could be made,
	// and a watchdog kills the controller.
	group string
	files string // the folder of the program that enters the group
}

// newLimit makes a cgroup of whichever version this machine has, if this user may.
func newLimit() (*limit, error) {
	files, err := os.MkdirTemp("", "limit-*")
	if err != nil {
		return nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	l := &limit{files: files}
	for _, version := range []struct {
		parent string
		limits map[string]string
	}{
		{"/sys/fs/cgroup/memory", map[string]string{"memory.limit_in_bytes": strconv.Itoa(memoryLimit)}},
		{"/sys/fs/cgroup", map[string]string{"memory.max": strconv.Itoa(memoryLimit), "memory.swap.max": "0"}},
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

// enter returns the path of a program that enters the group and becomes the controller.
func (l *limit) enter(controller string) (string, error) {
	if l.group == "" {
		return controller, nil
	}
	path := filepath.Join(l.files, "controller")
	text := fmt.Sprintf("#!/bin/sh\necho $$ > %s/cgroup.procs && exec %s \"$@\"\n", l.group, controller)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // it is run
		return "", fmt.Errorf("write the program that enters a cgroup: %w", err)
	}
	return path, nil
}

// close removes the group, which must be empty.
func (l *limit) close() {
	if l.group != "" {
		_ = os.Remove(l.group)
	}
	_ = os.RemoveAll(l.files)
}

// String says who enforces the limit.
func (l *limit) String() string {
	if l.group != "" {
		return "by the kernel"
	}
	return "by a watchdog"
}

// watch kills the controller if it needs more memory than it has, unless the kernel does
// so. Pages of the program's file do not count: the kernel drops them first.
func (l *limit) watch(controller *controlplane.Process) {
	for l.group == "" {
		time.Sleep(5 * time.Millisecond)
		if now, err := controlplane.MemoryOf(controller.PID()); err == nil && now.Own > memoryLimit {
			_ = controller.Kill()
		}
	}
}

// killed returns how often the kernel has killed a process of the group; 0 if it does not
// count that.
func (l *limit) killed() int {
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
