// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"time"
)

// stallsVariable is an environment variable with a duration. Each control plane then
// repeatedly stops one random process for up to that long and continues it. This finds
// races that a busy machine does not show. `make deflake` sets it.
const stallsVariable = "CONTROLPLANE_STALLS"

// stall stops and continues processes until the control plane stops.
func (c *ControlPlane) stall() error {
	value := os.Getenv(stallsVariable)
	if value == "" {
		return nil
	}
	longest, err := time.ParseDuration(value)
	if err != nil || longest <= 0 {
		return fmt.Errorf("%s=%q is no duration to stop processes for", stallsVariable, value)
	}
	over := make(chan struct{})
	c.stalls = func() { <-over }
	go func() {
		defer close(over)
		for c.awake(longest) {
			if p := c.anyProcess(); p != nil {
				p.stall(rand.N(longest))
			}
		}
	}()
	return nil
}

// awake waits for a random time and reports whether the control plane still runs.
func (c *ControlPlane) awake(longest time.Duration) bool {
	select {
	case <-c.stopping:
		return false
	case <-time.After(rand.N(longest)):
		return true
	}
}

func (c *ControlPlane) anyProcess() *Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.processes) == 0 {
		return nil
	}
	return c.processes[rand.IntN(len(c.processes))]
}

// stall stops the process for a while. It leaves a process alone that a test has paused.
// A test that pauses the process meanwhile waits.
func (p *Process) stall(d time.Duration) {
	p.pausing.Lock()
	defer p.pausing.Unlock()
	if p.paused {
		return
	}
	p.signal(syscall.SIGSTOP)
	time.Sleep(d)
	p.signal(syscall.SIGCONT)
}
