// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

// restartPause is the time between the end of a program and its next start.
const restartPause = time.Second

// Keeper restarts a program whenever it has ended, as a Deployment does.
type Keeper struct{ ended atomic.Int32 }

// Keep keeps a running program running until the test is over.
func Keep(t *testing.T, program *controlplane.Process) *Keeper {
	t.Helper()
	k, over := &Keeper{}, make(chan struct{})
	go func() {
		defer close(over)
		for {
			_ = program.Wait(t.Context())
			if t.Context().Err() != nil {
				return
			}
			k.ended.Add(1)
			time.Sleep(restartPause)
			if err := program.Start(t.Context()); err != nil {
				t.Errorf("start %s again: %v", program.Name, err)
				return
			}
		}
	}()
	t.Cleanup(func() { <-over })
	return k
}

// Ended returns how often the program has ended.
func (k *Keeper) Ended() int { return int(k.ended.Load()) }
