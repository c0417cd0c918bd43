// SPDX-License-Identifier: Apache-2.0

package program

import "golang.org/x/sys/unix"

const (
	readTermios  = unix.TIOCGETA
	writeTermios = unix.TIOCSETA
)
