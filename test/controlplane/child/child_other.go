// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package child

import (
	"bytes"
	"os/exec"
	"strconv"
	"syscall"
)

// Attributes put a process into a group of its own. No signal follows the death of
// its parent: only Linux has that, so elsewhere the processes of a caller that was
// killed go on until somebody ends them.
func Attributes(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// Stopped says whether a process stands still after SIGSTOP.
func Stopped(pid int) bool {
	state, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && bytes.HasPrefix(bytes.TrimSpace(state), []byte("T"))
}
