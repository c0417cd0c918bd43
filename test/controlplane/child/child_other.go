// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package child

import (
	"bytes"
	"os/exec"
	"strconv"
	"syscall"
)

// Attributes returns attributes that put a process into its own process group. It sends
// no signal when the parent dies: only Linux supports that. On other systems the
// processes of a killed caller run until a user ends them.
func Attributes(syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// Stopped reports whether SIGSTOP has stopped a process.
func Stopped(pid int) bool {
	state, err := exec.Command("ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && bytes.HasPrefix(bytes.TrimSpace(state), []byte("T"))
}
