// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"sync"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
)

// queue holds events, and never more than it may.
type queue struct {
	mu      sync.Mutex
	waiting []eventv1.Event // the oldest first
	most    int
	closed  bool
	// arrived has a token after something has come.
	arrived chan struct{}
}

func newQueue(most int) *queue { return &queue{most: most, arrived: make(chan struct{}, 1)} }

// push adds an event, and reports whether it was taken and whether the oldest
// gave way for it.
func (q *queue) push(event eventv1.Event) (taken, gaveWay bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false, false
	}
	if gaveWay = len(q.waiting) == q.most; gaveWay {
		q.dropOldest()
	}
	q.waiting = append(q.waiting, event)
	select {
	case q.arrived <- struct{}{}:
	default:
	}
	return true, gaveWay
}

// pop takes the oldest event out.
func (q *queue) pop() (eventv1.Event, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return eventv1.Event{}, false
	}
	event := q.waiting[0]
	q.dropOldest()
	return event, true
}

// dropOldest also lets go of the event's memory.
func (q *queue) dropOldest() {
	q.waiting[0] = eventv1.Event{}
	q.waiting = q.waiting[1:]
}

// putBack makes an event the oldest again.
func (q *queue) putBack(event eventv1.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append([]eventv1.Event{event}, q.waiting...)
}

// close takes no more events.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// clear drops what waits, and returns how many events those were.
func (q *queue) clear() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.waiting)
	q.waiting = nil
	return n
}

func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}
