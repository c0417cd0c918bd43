// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"time"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// Reports knows the reports of upstreams in other clusters. It never waits: it answers
// with what the last fetch found.
type Reports interface {
	// Last returns what the last fetch of the report of an upstream of an Environment found.
	// It is false if there was none since this process began.
	Last(e *environmentsv1.Environment, u environmentsv1.Upstream) (Fetched, bool)
}

// LongestFetch is how long a fetch may take. The registry may use half of it.
const LongestFetch = 30 * time.Second

// Fetched is what a fetch of the report of an upstream found.
type Fetched struct {
	// Releases are what the newest verified report says.
	Releases []environmentsv1.Release
	// Sequence is the number of that report; 0 if none was verified.
	Sequence int64
	// SignedBy are the fingerprints of the keys that have signed it.
	SignedBy []string
	// At is when the registry last confirmed that it is the newest one.
	At time.Time
	// Problem says why the last fetch found nothing that counts; nil if it did.
	Problem *verdict.Problem
}

// lastReport returns the last fetch of the report of an upstream in another cluster, if there was one. What
// was verified is cut to the size that the status of the Environment has for it.
func (g Gatherer) lastReport(e *environmentsv1.Environment, u environmentsv1.Upstream) (Fetched, bool) {
	if g.Reports == nil {
		return Fetched{}, false
	}
	last, ok := g.Reports.Last(e, u)
	last.Releases = environment.Kept(e, last.Releases)
	return last, ok
}

// remote reads what an upstream in another cluster says: by the last fetch, or else as
// it was recorded. What was verified before stays while the registry cannot be read, but
// nothing is promoted by that.
func (g Gatherer) remote(e *environmentsv1.Environment, u environmentsv1.Upstream) upstream.Upstream {
	read := upstream.Upstream{Upstream: u}
	known := environment.RecordOf(e, u)
	last, fetched := g.lastReport(e, u)
	read.Sequence, read.SignedBy, read.Releases = last.Sequence, last.SignedBy, last.Releases
	if last.Sequence == 0 {
		read.Releases = known.Releases
	}
	read.Seen = seen(e, u, cmp.Or(last.Sequence, known.Sequence), read.Releases)
	switch {
	case fetched:
		read.Problem = last.Problem
	case known.Message != "":
		read.Problem = &verdict.Problem{Reason: known.Reason, Message: known.Message}
	case known.Sequence == 0:
		read.Problem = unreadableUpstream("the report of %s in %s has not been read yet: the controller environment looks for it", u.Environment, u.Repository)
	}
	return read
}

// confirmRemote replaces what an upstream in another cluster says with what the last
// fetch found. It returns false if that is older than the Environment allows, or if
// there was none: then another one is needed first.
func (g Gatherer) confirmRemote(e *environmentsv1.Environment, u *upstream.Upstream, now time.Time) bool {
	last, fetched := g.lastReport(e, u.Upstream)
	switch {
	case u.Problem != nil:
		return true
	case !fetched, last.Problem == nil && now.Sub(last.At) > max(e.GetRequeueInterval(), LongestFetch): // it counts from its beginning
		return false
	}
	u.Problem = last.Problem
	if last.Sequence > 0 {
		u.Sequence, u.SignedBy, u.Releases = last.Sequence, last.SignedBy, last.Releases
		u.Seen = seen(e, u.Upstream, last.Sequence, last.Releases)
	}
	return true
}

// asEnvironment returns an upstream in another cluster as far as its report tells.
func (g Gatherer) asEnvironment(e *environmentsv1.Environment, u environmentsv1.Upstream) *environmentsv1.Environment {
	shown := &environmentsv1.Environment{}
	shown.Namespace, shown.Spec.Name, shown.Spec.Environment = u.Namespace, e.Spec.Name, u.Environment
	shown.Spec.RolloutRef.Name = u.Rollout
	shown.Status.Releases = g.remote(e, u).Releases
	return shown
}
