// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"sync"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"

	"github.com/fluxrollouts/rollout-controller/internal/fair"
)

// queue holds events, and never more than it may. However many events one namespace has,
// those of the others neither wait behind them nor give way to them.
type queue struct {
	mu      sync.Mutex
	waiting fair.Turns[eventv1.Event]
	most    int
	closed  bool
	// arrived has a token after something has come.
	arrived chan struct{}
}

func newQueue(most int) *queue { return &queue{most: most, arrived: make(chan struct{}, 1)} }

// push adds an event, and reports whether it was taken and whether another gave way for
// it: the oldest of the namespace that has most.
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

// pop takes the oldest event of the namespace whose turn it is.
func (q *queue) pop() (eventv1.Event, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.Pop()
}

// putBack makes an event the next again.
func (q *queue) putBack(event eventv1.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting.PushNext(event.InvolvedObject.Namespace, event)
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
	n := q.waiting.Len()
	q.waiting = fair.Turns[eventv1.Event]{}
	return n
}

func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.Len()
}
