// SPDX-License-Identifier: Apache-2.0

// Package pace measures how fast a machine is during other measurements.
package pace

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Pacer measures how fast the machine is: it does the same piece of work again and again,
// and measures its CPU time. A shared machine can become half as fast from one minute to
// the next, and the waves that are compared with each other take minutes.
type Pacer struct {
	path []uint32
	sum  uint32 // the result of the work, so that no compiler can leave the work out

	mu    sync.Mutex
	beats []beat
	err   error
}

// beat is how long the piece of work took at a time.
type beat struct {
	at   time.Time
	took time.Duration
}

const (
	// With beatEvery and beatSteps the work takes less than a hundredth of one CPU.
	beatEvery = 500 * time.Millisecond
	beatSteps = 1 << 15
	// With pathLength the steps miss the private caches of a CPU.
	pathLength = 1 << 21
)

// New returns a Pacer that has not measured yet.
func New() *Pacer {
	p := &Pacer{path: make([]uint32, pathLength)}
	order := rand.New(rand.NewPCG(1, 2)).Perm(pathLength)
	for i, at := range order {
		p.path[at] = uint32(order[(i+1)%pathLength])
	}
	return p
}

// Run measures until the context is done.
func (p *Pacer) Run(ctx context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for ctx.Err() == nil {
		took, err := p.beat()
		p.note(beat{time.Now(), took}, err)
		select {
		case <-ctx.Done():
		case <-time.After(beatEvery):
		}
	}
}

func (p *Pacer) beat() (time.Duration, error) {
	before, err := threadCPU()
	if err != nil {
		return 0, err
	}
	p.work()
	after, err := threadCPU()
	return after - before, err
}

func (p *Pacer) note(b beat, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.beats, p.err = append(p.beats, b), errors.Join(p.err, err)
}

// work does what most programs do most of the time: it reads values from memory and
// calculates a little with them.
func (p *Pacer) work() {
	at, sum := p.sum%pathLength, p.sum
	for range beatSteps {
		at = p.path[at]
		for shift := range 16 {
			sum = (sum ^ at>>shift) * 16777619
		}
	}
	p.sum = sum
}

// Between returns the average duration of the piece of work between two times. The beats
// just before and after count as well. Thus there are always some.
func (p *Pacer) Between(from, to time.Time) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var total, n time.Duration
	for _, b := range p.beats {
		if b.at.After(from.Add(-2*beatEvery)) && b.at.Before(to.Add(2*beatEvery)) {
			total, n = total+b.took, n+1
		}
	}
	if p.err != nil || n == 0 {
		return 0, errors.Join(errors.New("the pace of the machine was not measured"), p.err)
	}
	return total / n, nil
}

// threadCPU returns the CPU time of the calling thread.
func threadCPU() (time.Duration, error) {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		return 0, fmt.Errorf("read the CPU time of a thread: %w", err)
	}
	return time.Duration(at.Nano()), nil
}
