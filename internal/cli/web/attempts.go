// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net"
	"sync"
	"time"
)

// mostFailures is how many logins from one address may fail in a minute.
const mostFailures = 5

// attempts counts logins that have failed, by the address that they came from.
type attempts struct {
	mu     sync.Mutex
	since  time.Time
	failed map[string]int
}

// begin reports whether an address may try to log in. The attempt counts as failed until
// it has succeeded, so that many at once are no way around the limit.
func (a *attempts) begin(remote string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed == nil || now.Sub(a.since) >= time.Minute {
		a.since, a.failed = now, map[string]int{}
	}
	host, _, _ := net.SplitHostPort(remote) // without a port, all are one
	a.failed[host]++
	return a.failed[host] <= mostFailures
}

// succeeded takes an attempt back.
func (a *attempts) succeeded(remote string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if host, _, _ := net.SplitHostPort(remote); a.failed[host] > 0 {
		a.failed[host]--
	}
}
