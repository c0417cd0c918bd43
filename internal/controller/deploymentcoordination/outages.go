// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"sync"
	"time"
)

// readPatience is how long a namespace may be unreadable before its coordinations report
// it. A shorter failure is only retried.
const readPatience = 30 * time.Second

// outages records since when namespaces are unreadable. The zero value is ready to use.
type outages struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// worthEmitting reports whether a pass stores its results: the namespace is readable, or
// has been unreadable for so long that users have to know.
func (o *outages) worthEmitting(namespace string, unreadable error, now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if unreadable == nil {
		delete(o.since, namespace)
		return true
	}
	since, known := o.since[namespace]
	if !known {
		if o.since == nil {
			o.since = map[string]time.Time{}
		}
		o.since[namespace], since = now, now
	}
	return now.Sub(since) >= readPatience
}
