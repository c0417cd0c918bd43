// SPDX-License-Identifier: Apache-2.0

package deploymentcoordination

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
)

// asides remembers of which coordinations it was said that another installation acts.
// The zero value is ready.
type asides struct {
	mu   sync.Mutex
	said map[types.UID]bool
}

// first reports whether nobody has asked this about a coordination before.
func (a *asides) first(uid types.UID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.said == nil {
		a.said = map[types.UID]bool{}
	}
	before := a.said[uid]
	a.said[uid] = true
	return !before
}

// end forgets them all.
func (a *asides) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said = nil
}

// aside says that another installation acts, once on each coordination as well: the
// status is the other's to write. It is empty if this one acts.
func (r *Reconciler) aside(ctx context.Context, seen world) string {
	aside := ""
	if r.Admission != nil {
		aside = r.Admission.Aside()
	}
	if aside == "" {
		r.asides.end()
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(seen.coordinations)) {
		if c := seen.coordinations[name]; r.asides.first(c.UID) {
			r.tell(ctx, c, deployments.Note{Reason: coordinationv1.OtherCoordinatorReason, Warning: true, Message: aside})
		}
	}
	return aside
}
