// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin

package program

import "os"

// KeepOutput does nothing: on this system, a terminal keeps what was written.
func KeepOutput(*os.File) (restore func()) { return func() {} }
