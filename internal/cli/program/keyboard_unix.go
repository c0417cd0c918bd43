// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package program

import (
	"os"

	"golang.org/x/sys/unix"
)

// singleKeys makes a terminal give each key at once, and not show it. Ctrl-C and Ctrl-Z
// stay what they are, and so does what is written. ok is false if the process is in the
// background: then the keys are for others, and to read them would stop it.
func singleKeys(file *os.File) (restore func(), ok bool) {
	return changeTerminal(file, func(mode *unix.Termios) {
		mode.Lflag &^= unix.ICANON | unix.ECHO
		mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 1, 0
	})
}

// KeepOutput makes a terminal keep what was written to it when it gets Ctrl-C. Otherwise it
// discards what it has not shown yet, and that can be what this program says about the
// interrupt: the signal comes first.
func KeepOutput(file *os.File) (restore func()) {
	restore, _ = changeTerminal(file, func(mode *unix.Termios) { mode.Lflag |= unix.NOFLSH })
	return restore
}

// changeTerminal changes the mode of a terminal. ok is false if the process is in the
// background, because the terminal is used by others then, and if it is not a terminal.
func changeTerminal(file *os.File, change func(*unix.Termios)) (restore func(), ok bool) {
	fd := int(file.Fd())
	was, err := unix.IoctlGetTermios(fd, readTermios)
	foreground, failed := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil || failed != nil || foreground != unix.Getpgrp() {
		return func() {}, false
	}
	changed := *was
	change(&changed)
	if unix.IoctlSetTermios(fd, writeTermios, &changed) != nil {
		return func() {}, false
	}
	return func() { _ = unix.IoctlSetTermios(fd, writeTermios, was) }, true
}
