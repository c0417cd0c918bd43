// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"sync"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"

	"github.com/fluxrollouts/rollout-controller/internal/fair"
)

// queue is a bounded queue of events. No matter how many events one namespace has, the
// events of others do not wait behind them and are not dropped for them.
type queue struct {
	mu      sync.Mutex
	waiting fair.Turns[eventv1.Event]
	most    int
	closed  bool
	// arrived contains a token after an event was added.
	arrived chan struct{}
}

func newQueue(most int) *queue { return &queue{most: most, arrived: make(chan struct{}, 1)} }

// push adds an event. It reports whether the event was accepted, and whether another one
// was dropped for it: the oldest of the namespace with the most events.
func (q *queue) push(event eventv1.Event) (taken, gaveWay bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false, false
	}
	q.waiting.Push(event.InvolvedObject.Namespace, event)
	if gaveWay = q.waiting.Len() > q.most; gaveWay {
		q.waiting.DropFromLongest()
	}
	select {
	case q.arrived <- struct{}{}:
	default:
	}
	return true, gaveWay
}

// pop removes and returns the oldest event of the namespace whose turn it is.
func (q *queue) pop() (eventv1.Event, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.Pop()
}

// putBack makes an event the next one again.
func (q *queue) putBack(event eventv1.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting.PushNext(event.InvolvedObject.Namespace, event)
}

// close makes the queue accept no more events.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
}

// clear drops the waiting events and returns their number.
func (q *queue) clear() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.waiting.Len()
	q.waiting = fair.Turns[eventv1.Event]{}
	return n
}

func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.Len()
}
