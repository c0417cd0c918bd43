// SPDX-License-Identifier: Apache-2.0

package request

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

// Promotions are the history of a Rollout, newest first, and what puts its releases in
// order.
type Promotions struct {
	History []v1alpha1.DeploymentHistoryEntry
	Ledger  []v1alpha1.VersionInfo
	Order   releases.Order
}

// Earlier returns the promotion that a rollback goes back to: of the releases that
// succeeded here and are older than the current one, the one that was promoted last. Those
// that were left for an older one, or that failed last, are left out. It is nil if there is
// none.
//
// leaves is the promotion that the current release has already gone back from; nil if it
// has not. Nobody knows how far back a second rollback is meant to go.
func (p Promotions) Earlier() (to, leaves *v1alpha1.DeploymentHistoryEntry) {
	first := slices.IndexFunc(p.History, func(e v1alpha1.DeploymentHistoryEntry) bool { return e.Version.Tag != p.History[0].Version.Tag })
	if first < 0 {
		return nil, nil
	}
	if p.WentBack(first - 1) {
		return nil, &p.History[first]
	}
	isBad := map[string]bool{} // by the newest promotion of the tag
	for i := first; i < len(p.History); i++ {
		entry := &p.History[i]
		tag := entry.Version.Tag
		if _, known := isBad[tag]; !known {
			isBad[tag] = p.WentBack(i-1) || entry.State() == v1alpha1.BakeFailed
		}
		if !isBad[tag] && entry.State() == v1alpha1.BakeSucceeded && p.isOlder(entry.Version, p.History[0].Version) {
			return entry, nil
		}
	}
	return nil, nil
}

// WentBack reports whether a promotion has replaced a newer release.
func (p Promotions) WentBack(i int) bool {
	return p.History[i].IsRollback() || p.isOlder(p.History[i].Version, p.History[i+1].Version)
}

// isOlder reports whether release a comes before release b: by the order of the policy, or
// else by when they appeared.
func (p Promotions) isOlder(a, b v1alpha1.VersionInfo) bool {
	switch p.Order.Relation(releases.AsListed(p.Ledger, a), releases.AsListed(p.Ledger, b)) {
	case releases.Older:
		return true
	case releases.Newer, releases.SameRelease:
		return false
	case releases.Unranked, releases.SameVersion:
	}
	if at, other := releases.LastIndex(p.Ledger, a.Tag), releases.LastIndex(p.Ledger, b.Tag); at >= 0 && other >= 0 {
		return at < other
	}
	return p.firstOf(a.Tag) > p.firstOf(b.Tag)
}

// firstOf returns the position of the oldest promotion of a tag.
func (p Promotions) firstOf(tag string) int {
	for i := range slices.Backward(p.History) {
		if p.History[i].Version.Tag == tag {
			return i
		}
	}
	return -1
}

// Named returns the newest promotion before the current one with a tag, or else the one with
// a number, with or without #; nil if there is none.
func (p Promotions) Named(name string) *v1alpha1.DeploymentHistoryEntry {
	id, err := strconv.ParseInt(strings.TrimPrefix(name, "#"), 10, 64)
	byTag := func(e v1alpha1.DeploymentHistoryEntry) bool { return e.Version.Tag == name }
	byID := func(e v1alpha1.DeploymentHistoryEntry) bool { return err == nil && e.ID != nil && *e.ID == id }
	for _, is := range []func(v1alpha1.DeploymentHistoryEntry) bool{byTag, byID} {
		if i := slices.IndexFunc(p.History[1:], is); i >= 0 {
			return &p.History[i+1]
		}
	}
	return nil
}
