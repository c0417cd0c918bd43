// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// singleKeys makes a terminal give each key at once, and not show it. Ctrl-C and Ctrl-Z
// stay what they are, and so does what is written. ok is false if the process is in the
// background: then the keys are for others, and to read them would stop it.
func singleKeys(file *os.File) (restore func(), ok bool) {
	fd := int(file.Fd())
	was, err := unix.IoctlGetTermios(fd, readTermios)
	foreground, failed := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	if err != nil || failed != nil || foreground != unix.Getpgrp() {
		return func() {}, false
	}
	single := *was
	single.Lflag &^= unix.ICANON | unix.ECHO
	single.Cc[unix.VMIN], single.Cc[unix.VTIME] = 1, 0
	if unix.IoctlSetTermios(fd, writeTermios, &single) != nil {
		return func() {}, false
	}
	return func() { _ = unix.IoctlSetTermios(fd, writeTermios, was) }, true
}
