// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/time/rate"
)

// mostLimits is how many registries have a limit of their own at a time.
const mostLimits = 256

// ErrLimit means that more requests wait for a registry than are sent to it in time.
var ErrLimit = errors.New("more requests to the registry wait than --registry-qps and --registry-burst allow")

// Limit sets how many requests for reports are sent to one host per second, and how many
// may be sent at once after a pause. Each waits for its turn within its own time. Without
// a limit, or with 0, none waits. It must be called before the first request.
func (r *Reports) Limit(qps float64, burst int) {
	r.limits.qps, r.limits.burst = rate.Limit(qps), burst
}

// limits are the limits of the hosts that were asked last. The zero value limits nothing.
type limits struct {
	qps   rate.Limit
	burst int

	mu    sync.Mutex
	hosts map[string]*rate.Limiter
}

// wait returns when the next request may be sent to a host.
func (l *limits) wait(ctx context.Context, host string) error {
	if l.qps <= 0 {
		return nil
	}
	if err := l.of(host).Wait(ctx); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("wait to ask the registry: %w", ctx.Err())
		}
		return ErrLimit
	}
	return nil
}

func (l *limits) of(host string) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if limit := l.hosts[host]; limit != nil {
		return limit
	}
	if l.hosts == nil {
		l.hosts = map[string]*rate.Limiter{}
	}
	for other := range l.hosts {
		if len(l.hosts) < mostLimits {
			break
		}
		delete(l.hosts, other)
	}
	limit := rate.NewLimiter(l.qps, max(1, l.burst))
	l.hosts[host] = limit
	return limit
}
