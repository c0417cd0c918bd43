// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/registry/fetch"
)

// remote reads the reports of upstreams in other clusters. They are fetched as long
// as a release waits for an upstream, once more before a release that needs their proof is
// promoted, and once when a bake ends: what runs here may have been withdrawn there.
type remote struct{ store *fetch.Store }

// recheckWithin is longer than a fetch takes. A Rollout comes back after that time even if
// the fetch that it waits for never began.
const recheckWithin = time.Minute

// follow says which reports a Rollout needs after a decision.
func (x remote) follow(s *gather.Snapshot, d promotion.Decision) {
	if x.store == nil {
		return
	}
	upstreams := remoteUpstreams(s)
	if waits(d) {
		x.ask(s, upstreams, time.Time{})
	} else {
		x.forget(client.ObjectKeyFromObject(s.Rollout))
	}
	// The last fetch may have told when to fetch again for an earlier release.
	if d.Action == promotion.FinishBake || waits(d) && isNewCandidate(s, d) {
		for _, u := range upstreams {
			x.store.Once(u)
		}
	}
}

// isNewCandidate reports whether the newest candidate is not in the status yet.
func isNewCandidate(s *gather.Snapshot, d promotion.Decision) bool {
	newest := d.Candidates[0].Release.Tag
	return !slices.ContainsFunc(s.Rollout.Status.ReleaseCandidates, func(c v1alpha1.ReleaseCandidate) bool { return c.Tag == newest })
}

// ask asks for fetches: one at a time, or at the zero time as long as a release waits.
func (x remote) ask(s *gather.Snapshot, upstreams []fetch.Upstream, at time.Time) {
	var lookups []fetch.Lookup
	for _, u := range upstreams {
		lookups = append(lookups, fetch.Lookup{Upstream: u, At: at})
	}
	x.store.Ask(client.ObjectKeyFromObject(s.Rollout), lookups)
}

// forget drops what the Rollout needs.
func (x remote) forget(rollout types.NamespacedName) {
	if x.store != nil {
		x.store.Ask(rollout, nil)
	}
}

// remoteUpstreams returns the upstreams in other clusters.
func remoteUpstreams(s *gather.Snapshot) []fetch.Upstream {
	var all []fetch.Upstream
	for _, e := range s.Upstreams.Environments {
		for _, u := range e.Upstreams {
			if u.IsRemote() {
				all = append(all, fetch.Upstream{Environment: client.ObjectKeyFromObject(e.Environment), Name: u.Environment})
			}
		}
	}
	return all
}

// waits reports whether a release waits for an upstream.
func waits(d promotion.Decision) bool {
	for i := range d.Candidates {
		if d.Candidates[i].HeldByUpstreams() {
			return true
		}
	}
	return false
}
