// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"strings"
	"sync"
	"time"
)

// A failed write is retried after a delay, no matter how often other events come in
// between. The delay doubles each time.
const firstRetry, lastRetry = time.Second, 5 * time.Minute

// retries contains the objects that could not be written, and paces the next attempts.
// The zero value is ready to use. A key is namespace/name.
type retries struct {
	mu     sync.Mutex
	unmade map[string]unmade
}

// unmade is a write that failed.
type unmade struct {
	err   error
	pause time.Duration
	next  time.Time
}

// failed records that an object could not be written.
func (r *retries) failed(key string, err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unmade == nil {
		r.unmade = map[string]unmade{}
	}
	pause := min(max(2*r.unmade[key].pause, firstRetry), lastRetry)
	r.unmade[key] = unmade{err: err, pause: pause, next: now.Add(pause)}
}

// settle forgets the writes of a namespace that are not wanted any more, and reports
// whether there were any.
func (r *retries) settle(namespace string, isWanted func(key string) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	settled := false
	for key := range r.unmade {
		if strings.HasPrefix(key, namespace+"/") && !isWanted(key) {
			delete(r.unmade, key)
			settled = true
		}
	}
	return settled
}

// made forgets the failure of an object.
func (r *retries) made(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unmade, key)
}

// failure returns why the last write to an object failed; empty if it did not.
func (r *retries) failure(key string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u, ok := r.unmade[key]; ok {
		return u.err.Error()
	}
	return ""
}

// waits reports whether it is too early to write to an object again.
func (r *retries) waits(key string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Before(r.unmade[key].next)
}

// next returns when to write to an object of a namespace again; zero if none waits.
func (r *retries) next(namespace string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first time.Time
	for key, u := range r.unmade {
		if strings.HasPrefix(key, namespace+"/") && (first.IsZero() || u.next.Before(first)) {
			first = u.next
		}
	}
	return first
}
