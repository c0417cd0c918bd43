// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
)

// A write that could not be made is tried again after a pause, however often
// something else happens in between. The pause doubles each time.
const firstRetry, lastRetry = time.Second, 5 * time.Minute

// retries remembers which Deployments could not be written, and paces the next
// attempts. The zero value is ready.
type retries struct {
	mu     sync.Mutex
	unmade map[string]unmade
}

// unmade is a write that could not be made.
type unmade struct {
	err   error
	pause time.Duration
	next  time.Time
}

// failed remembers that a Deployment could not be written.
func (r *retries) failed(deployment string, err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unmade == nil {
		r.unmade = map[string]unmade{}
	}
	pause := min(max(2*r.unmade[deployment].pause, firstRetry), lastRetry)
	r.unmade[deployment] = unmade{err: err, pause: pause, next: now.Add(pause)}
}

// settle forgets the writes of a namespace that are not wanted any more, and
// reports whether there were any.
func (r *retries) settle(namespace string, wanted []deployments.Write) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	settled := false
	for deployment := range r.unmade {
		if strings.HasPrefix(deployment, namespace+"/") &&
			!slices.ContainsFunc(wanted, func(w deployments.Write) bool { return w.Deployment == deployment }) {
			delete(r.unmade, deployment)
			settled = true
		}
	}
	return settled
}

// made forgets what was said of a Deployment.
func (r *retries) made(deployment string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unmade, deployment)
}

// failure is why the last write to a Deployment could not be made; empty if it
// could.
func (r *retries) failure(deployment string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if u, ok := r.unmade[deployment]; ok {
		return u.err.Error()
	}
	return ""
}

// waits reports whether it is too early to write to a Deployment again.
func (r *retries) waits(deployment string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Before(r.unmade[deployment].next)
}

// next is when to write to one of the Deployments again; zero if none waits.
func (r *retries) next(all []deployments.Deployment) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first time.Time
	for i := range all {
		at := r.unmade[all[i].Key].next
		if first.IsZero() || !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}
