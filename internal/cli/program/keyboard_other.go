// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !windows

package program

import "os"

// singleKeys does nothing: on this system, only Ctrl-C ends what runs.
func singleKeys(*os.File) (restore func(), ok bool) { return func() {}, false }

// KeepOutput does nothing: on this system, a terminal keeps what was written.
func KeepOutput(*os.File) (restore func()) { return func() {} }
