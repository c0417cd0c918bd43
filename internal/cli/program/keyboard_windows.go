// SPDX-License-Identifier: Apache-2.0

package program

import (
	"os"

	"golang.org/x/sys/windows"
)

// singleKeys makes a terminal give each key at once, and not show it. Ctrl-C stays what it
// is.
func singleKeys(file *os.File) (restore func(), ok bool) {
	console := windows.Handle(file.Fd())
	var was uint32
	if windows.GetConsoleMode(console, &was) != nil {
		return func() {}, false
	}
	if windows.SetConsoleMode(console, was&^(windows.ENABLE_LINE_INPUT|windows.ENABLE_ECHO_INPUT)) != nil {
		return func() {}, false
	}
	return func() { _ = windows.SetConsoleMode(console, was) }, true
}

// KeepOutput does nothing: on this system, a terminal keeps what was written.
func KeepOutput(*os.File) (restore func()) { return func() {} }
