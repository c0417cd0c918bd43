// SPDX-License-Identifier: Apache-2.0

package env

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

// restartPause is the time between the end of a program and its next start.
const restartPause = time.Second

// Restarter restarts a program whenever it has ended, as a Deployment does.
type Restarter struct{ ended atomic.Int32 }

// KeepRunning keeps a running program running until the test is over.
func KeepRunning(t *testing.T, program *controlplane.Process) *Restarter {
	t.Helper()
	r, over := &Restarter{}, make(chan struct{})
	go func() {
		defer close(over)
		for {
			_ = program.Wait(t.Context())
			if t.Context().Err() != nil {
				return
			}
			r.ended.Add(1)
			time.Sleep(restartPause)
			if err := program.Start(t.Context()); err != nil {
				t.Errorf("start %s again: %v", program.Name, err)
				return
			}
		}
	}()
	t.Cleanup(func() { <-over })
	return r
}

// Ended returns how often the program has ended.
func (r *Restarter) Ended() int { return int(r.ended.Load()) }
