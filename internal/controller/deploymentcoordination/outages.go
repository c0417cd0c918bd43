// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"sync"
	"time"
)

// readPatience is how long a namespace may be unreadable before its coordinations say
// so. What fails for a moment is only tried again.
const readPatience = 30 * time.Second

// outages remembers since when namespaces cannot be read. The zero value is ready.
type outages struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// worthTelling reports whether what a pass has read of a namespace is to be stored: it
// could read, or cannot for so long that people have to know.
func (o *outages) worthTelling(namespace string, unreadable error, now time.Time) bool {
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
