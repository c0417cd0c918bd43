// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// grace is how long the controller may take to end.
const grace = 30 * time.Second

// runIn runs the controller against the cluster of the current context. It elects no
// leader: a controller that is installed there must be stopped first.
func runIn(ctx context.Context, program string, args []string) error {
	controller := exec.CommandContext(ctx, program, args...)
	controller.Stdout, controller.Stderr = os.Stdout, os.Stderr
	controller.Env = append(os.Environ(), "RUNTIME_NAMESPACE=default")
	controller.Cancel = func() error { return controller.Process.Signal(syscall.SIGTERM) }
	controller.WaitDelay = grace
	return ended(ctx, controller.Run())
}
