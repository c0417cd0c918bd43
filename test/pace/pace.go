// SPDX-License-Identifier: Apache-2.0

// Package pace tells how fast a machine is while something is measured on it.
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

// Pacer tells how fast the machine is: it does the same piece of work again and
// again, and measures the CPU time that it takes. A shared machine can become half
// as fast from one minute to the next, and the waves that are compared with each
// other take minutes.
type Pacer struct {
	path []uint32
	sum  uint32 // what the work came to, so that no compiler can leave it out

	mu    sync.Mutex
	beats []beat
	err   error
}

// beat is how long the piece of work took at some time.
type beat struct {
	at   time.Time
	took time.Duration
}

const (
	// beatEvery and beatSteps have it take less than a hundredth of one CPU.
	beatEvery = 500 * time.Millisecond
	beatSteps = 1 << 15
	// pathLength has the steps miss the caches that a CPU has for itself.
	pathLength = 1 << 21
)

// New returns a pacer that has not measured yet.
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

// work is what most programs do most of the time: they look something up in
// memory, and calculate a little with it.
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

// Between is how long the piece of work took on average between two times. The beats
// just before and after count, so that there are some.
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

// threadCPU is the CPU time that the calling thread has had.
func threadCPU() (time.Duration, error) {
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &at); err != nil {
		return 0, fmt.Errorf("read the CPU time of a thread: %w", err)
	}
	return time.Duration(at.Nano()), nil
}
