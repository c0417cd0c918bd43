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
	"github.com/fluxrollouts/rollout-controller/internal/registry/look"
)

// elsewhere reads the reports of upstreams in other clusters. They are looked at as long
// as a release waits for an upstream, once more before a release that needs their proof is
// promoted, and once when a bake ends: what runs here may have been withdrawn there.
type elsewhere struct{ store *look.Store }

// looksWithin is longer than a look takes. A Rollout comes back after that time even if
// the look that it waits for never began.
const looksWithin = time.Minute

// follow says which reports a Rollout needs after a decision.
func (x elsewhere) follow(s *gather.Snapshot, d promotion.Decision) {
	if x.store == nil {
		return
	}
	upstreams := upstreamsElsewhere(s)
	if waits(d) {
		x.ask(s, upstreams, time.Time{})
	} else {
		x.forget(client.ObjectKeyFromObject(s.Rollout))
	}
	// The last look may have told when to look again for an earlier release.
	if d.Action == promotion.FinishBake || waits(d) && isNews(s, d) {
		for _, u := range upstreams {
			x.store.Once(u)
		}
	}
}

// isNews reports whether the newest candidate is not in the status yet.
func isNews(s *gather.Snapshot, d promotion.Decision) bool {
	newest := d.Candidates[0].Release.Tag
	return !slices.ContainsFunc(s.Rollout.Status.ReleaseCandidates, func(c v1alpha1.ReleaseCandidate) bool { return c.Tag == newest })
}

// ask asks for looks: one at a time, or at the zero time as long as a release waits.
func (x elsewhere) ask(s *gather.Snapshot, upstreams []look.Upstream, at time.Time) {
	var wishes []look.Wish
	for _, u := range upstreams {
		wishes = append(wishes, look.Wish{Upstream: u, At: at})
	}
	x.store.Ask(client.ObjectKeyFromObject(s.Rollout), wishes)
}

// forget drops what the Rollout needs.
func (x elsewhere) forget(rollout types.NamespacedName) {
	if x.store != nil {
		x.store.Ask(rollout, nil)
	}
}

// upstreamsElsewhere returns the upstreams in other clusters.
func upstreamsElsewhere(s *gather.Snapshot) []look.Upstream {
	var all []look.Upstream
	for _, e := range s.Upstreams.Environments {
		for _, u := range e.Upstreams {
			if u.IsElsewhere() {
				all = append(all, look.Upstream{Environment: client.ObjectKeyFromObject(e.Environment), Name: u.Environment})
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
