// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// openPage serves the page of the command line, whose address the guide shows. The returned
// function ends it.
func (d *demo) openPage(ctx context.Context) (end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	page := exec.CommandContext(ctx, d.plugin(), "ui", "--open=false", "--allow-actions")
	page.Env = append(os.Environ(), "KUBECONFIG="+d.plane.Kubeconfig())
	page.Cancel = func() error { return page.Process.Signal(os.Interrupt) }
	end = func() {
		cancel()
		_ = page.Wait() // it was interrupted
	}
	said, err := page.StdoutPipe()
	if err != nil {
		return cancel, err
	}
	if err := page.Start(); err != nil {
		return cancel, fmt.Errorf("serve the page: %w", err)
	}
	address, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		return end, fmt.Errorf("the page says no address: %w", err)
	}
	d.address = strings.TrimSpace(address)
	return end, nil
}
