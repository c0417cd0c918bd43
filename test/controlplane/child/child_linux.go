// SPDX-License-Identifier: Apache-2.0

package child

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Attributes returns attributes that put a process into its own process group. The
// process receives the signal when the thread that started it ends.
func Attributes(atParentsDeath syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: atParentsDeath}
}

// Stopped reports whether SIGSTOP has stopped every thread of a process.
func Stopped(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		return false
	}
	for _, thread := range threads {
		content, err := os.ReadFile(thread)
		if err != nil {
			continue // it has ended
		}
		// The state comes after the name, which is in parentheses.
		if after := content[bytes.LastIndexByte(content, ')')+1:]; !bytes.HasPrefix(after, []byte(" T")) {
			return false
		}
	}
	return true
}
