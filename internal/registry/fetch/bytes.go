// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"math"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Sizes of reports are in bytes of JSON. In memory, they take about as much.
const (
	// mostBytes is how much of all reports may be in memory before less is kept of those that
	// follow. Above it, namespaces with few may have as much again.
	mostBytes = 4 << 20
	// mostBytesOf is how much counts as few for one namespace.
	mostBytesOf = 512 << 10
	// leastBytes is how much of a report is always kept: at least its newest release.
	leastBytes = 2 << 10
)

// limitFor returns how much may be kept of the report of an upstream: as much as the status of
// its Environment has room for, unless there is too much in memory already.
func (s *Store) limitFor(u Upstream, e *environmentsv1.Environment) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	share, its, all := environment.Share(e), s.bytes[u.Environment.Namespace], 0
	for _, bytes := range s.bytes {
		all += bytes
	}
	if all >= 2*mostBytes || all >= mostBytes && its >= mostBytesOf {
		return min(share, leastBytes)
	}
	return share
}

// fit cuts a report to a limit, and returns up to which limit the result is the same.
func fit(r *report.Report, limit int) int {
	if bytesOf(*r) <= limit {
		return math.MaxInt
	}
	r.Releases = environment.Fit(r.Releases, limit)
	return limit
}

func bytesOf(r report.Report) int {
	bytes := 0
	for i := range r.Releases {
		bytes += truncate.ItemSize(r.Releases[i])
	}
	return bytes
}

// count replaces what is in memory of an upstream in the sum of its namespace.
func (s *Store) count(u Upstream, before, after int) {
	if s.bytes[u.Environment.Namespace] += after - before; s.bytes[u.Environment.Namespace] == 0 {
		delete(s.bytes, u.Environment.Namespace)
	}
}
