// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package program

import (
	"os"

	"golang.org/x/sys/unix"
)

// KeepOutput makes a terminal keep what was written to it when it gets Ctrl-C. Otherwise it
// discards what it has not shown yet, and that can be what this program says about the
// interrupt: the signal comes first. It changes nothing if the process is in the background,
// because the terminal is used by others then.
func KeepOutput(file *os.File) (restore func()) {
	fd := int(file.Fd())
	was, err := unix.IoctlGetTermios(fd, readTermios)
	foreground, failed := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil || failed != nil || foreground != unix.Getpgrp() {
		return func() {}
	}
	changed := *was
	changed.Lflag |= unix.NOFLSH
	if unix.IoctlSetTermios(fd, writeTermios, &changed) != nil {
		return func() {}
	}
	return func() { _ = unix.IoctlSetTermios(fd, writeTermios, was) }
}
