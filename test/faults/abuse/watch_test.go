// SPDX-License-Identifier: Apache-2.0

package abuse

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

// memory is the highest memory use of a process.
type memory struct {
	pid int

	mu   sync.Mutex
	peak int64
}

// watchMemory measures the controller until the test is over.
func watchMemory(t *testing.T) *memory {
	t.Helper()
	return watchMemoryOf(t, plane.Controller.PID())
}

func watchMemoryOf(t *testing.T, pid int) *memory {
	t.Helper()
	m, over := &memory{pid: pid}, make(chan struct{})
	go func() {
		defer close(over)
		for t.Context().Err() == nil {
			if now, err := controlplane.MemoryOf(m.pid); err == nil {
				m.mu.Lock()
				m.peak = max(m.peak, now.Own)
				m.mu.Unlock()
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	t.Cleanup(func() { <-over })
	return m
}

func (m *memory) most() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peak
}

// inbox receives the controller's Flux events.
type inbox struct {
	mu       sync.Mutex
	seen     map[string]int // by namespace
	last     []string
	reported map[string]bool
}

// ServeHTTP implements http.Handler.
func (i *inbox) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var event eventv1.Event
	if json.NewDecoder(r.Body).Decode(&event) != nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.seen == nil {
		i.seen, i.reported = map[string]int{}, map[string]bool{}
	}
	namespace := event.InvolvedObject.Namespace
	i.seen[namespace]++
	version, _, _ := strings.Cut(strings.TrimPrefix(event.Message, "Rollout shop: "), ":")
	i.reported[fmt.Sprint(namespace, event.Reason, version)] = true
	if i.last = append(i.last, namespace+" "+event.Reason+" "+event.Message); len(i.last) > 20 {
		i.last = i.last[1:]
	}
}

// has reports whether an event about a version has arrived.
func (i *inbox) has(namespace, reason, version string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.reported[fmt.Sprint(namespace, reason, version)]
}

// of returns the number of events of a namespace.
func (i *inbox) of(namespace string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.seen[namespace]
}

// String returns the latest events.
func (i *inbox) String() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return strings.Join(i.last, "\n")
}
