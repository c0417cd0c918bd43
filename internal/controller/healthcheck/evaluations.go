// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
)

// evaluations contains, per HealthCheck, state that saves work. Correctness does not
// depend on it: after a restart it is empty, and everything is looked at once.
type evaluations struct {
	mu    sync.Mutex
	byKey map[types.NamespacedName]evaluation
}

type evaluation struct {
	basis   string
	healthy bool

	wroteVersion string
	wroteAt      time.Time
}

func (e *evaluations) change(key types.NamespacedName, change func(*evaluation)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byKey == nil {
		e.byKey = map[types.NamespacedName]evaluation{}
	}
	known := e.byKey[key]
	change(&known)
	e.byKey[key] = known
}

func (e *evaluations) get(key types.NamespacedName) evaluation {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.byKey[key]
}

func (e *evaluations) forget(key types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.byKey, key)
}

// begin removes the basis of the last evaluation: until this one is done, every event
// counts as a change.
func (e *evaluations) begin(key types.NamespacedName) {
	e.change(key, func(known *evaluation) { known.basis = "" })
}

func (e *evaluations) found(key types.NamespacedName, result health.Result) {
	e.change(key, func(known *evaluation) {
		known.basis, known.healthy = result.Basis, result.Status == v1alpha1.HealthStatusHealthy
	})
}

func (e *evaluations) wrote(key types.NamespacedName, version string, now time.Time) {
	e.change(key, func(known *evaluation) { known.wroteVersion, known.wroteAt = version, now })
}

// isOwn reports whether this instance wrote the given version of a check.
func (e *evaluations) isOwn(key types.NamespacedName, version string) bool {
	return e.get(key).wroteVersion == version
}

// restsOn reports whether the last evaluation already saw what the check is about in its
// present state, as far as the verdict depends on it.
func (e *evaluations) restsOn(key types.NamespacedName, o client.Object) bool {
	known := e.get(key)
	return known.basis != "" && known.basis == kustomization.Basis(o, known.healthy)
}

func (e *evaluations) untilNextMessage(key types.NamespacedName, now time.Time) time.Duration {
	return remaining(e.get(key).wroteAt, messagePace, now)
}

// remaining returns at most the pace, also when the clock was set back.
func remaining(since time.Time, pace time.Duration, now time.Time) time.Duration {
	if since.IsZero() {
		return 0
	}
	return min(max(since.Add(pace).Sub(now), 0), pace)
}
