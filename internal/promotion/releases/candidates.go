// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// MostExplained is how many of the newest candidates have their holds in the status of a
// Rollout. The one that is next has them anyway.
const MostExplained = 20

// Candidates returns the known releases that are newer than what the history says is
// deployed, or that may be, and that the policy admits, newest first. A release whose name
// cannot be a tag is not a candidate, however it got into the list of known releases.
//
// The policy's order decides which release is newer. Among equals, it is the one that was
// built later. Where the order cannot compare, the one that is listed later is newer. If a
// tag is listed twice, only the newest of its releases counts. Other content under the
// current tag comes next after the current release, if every target runs that by its digest.
func Candidates(ledger []v1alpha1.VersionInfo, history []v1alpha1.DeploymentHistoryEntry, policy Policy) []v1alpha1.VersionInfo {
	deployed := PositionOf(ledger, history, policy)
	var candidates []v1alpha1.VersionInfo
	for i, release := range ledger {
		newer := deployed.mayBeNewer(release, i) && !policy.IsCurrent(history, release.Tag) || policy.isPushedAgain(history, release)
		if newer && IsTag(release.Tag) && policy.Order.Admits(release.Tag) {
			candidates = append(candidates, release)
		}
	}
	slices.Reverse(candidates)
	return EachOnce(candidates)
}

// Position is what candidates must be newer than. Without an entry, every release is newer.
type Position struct {
	Entry *v1alpha1.DeploymentHistoryEntry
	Placed
	Order Order
	index int // in the known releases; -1 if it is not among them
}

// mayBeNewer reports whether a release is newer, or may be. The index is that of the
// release in the known releases.
func (p Position) mayBeNewer(release v1alpha1.VersionInfo, index int) bool {
	if p.Entry == nil {
		return true
	}
	switch p.Order.Placed(release).Relation(p.Placed) {
	case Newer, SameVersion:
		return true
	case Unranked:
		return p.Order.Kind() == ByAppearance && p.index >= 0 && index > p.index
	case Older, SameRelease:
	}
	return false
}

// EachOnce returns the first release of each tag.
func EachOnce(releases []v1alpha1.VersionInfo) []v1alpha1.VersionInfo {
	seen := make(map[string]bool, len(releases))
	return slices.DeleteFunc(releases, func(v v1alpha1.VersionInfo) bool {
		again := seen[v.Tag]
		seen[v.Tag] = true
		return again
	})
}

// CandidatesOf returns the candidates of the Rollout's policy. While the policy does not
// exist or cannot be read, nobody knows what it admits and in which order. In that case,
// the candidates are those that the status still lists.
func CandidatesOf(rollout *v1alpha1.Rollout, policy Policy, ledger []v1alpha1.VersionInfo) []v1alpha1.VersionInfo {
	candidates := Candidates(ledger, rollout.Status.History, policy)
	if !policy.Blocking || policy.Order.IsKnown() {
		return candidates
	}
	listed := make(map[string]bool, len(rollout.Status.ReleaseCandidates))
	for i := range rollout.Status.ReleaseCandidates {
		listed[rollout.Status.ReleaseCandidates[i].Tag] = true
	}
	return slices.DeleteFunc(candidates, func(v v1alpha1.VersionInfo) bool { return !listed[v.Tag] })
}

// PositionOf returns what candidates must be newer than. This is the current release. If
// the policy cannot rank it, as after a pin to a custom build, it is the newest entry that
// can be ranked. There is none if no entry can be ranked, or if the newest one is of
// another image.
func PositionOf(ledger []v1alpha1.VersionInfo, history []v1alpha1.DeploymentHistoryEntry, policy Policy) Position {
	order := policy.Order
	if BeforeMove(history, policy) != nil {
		return Position{}
	}
	for i := range history {
		entry := &history[i]
		at := LastIndex(ledger, entry.Version.Tag)
		ranks := order.Comparable(entry.Version.Tag) || order.Kind() == ByAppearance && at >= 0
		if ranks && !policy.IsOfAnother(entry) {
			return Position{entry, order.Placed(AsListed(ledger, entry.Version)), order, at}
		}
	}
	return Position{}
}

// AsListed adds to a release that was promoted what is known of the same content since.
func AsListed(ledger []v1alpha1.VersionInfo, promoted v1alpha1.VersionInfo) v1alpha1.VersionInfo {
	if listed := Known(ledger, promoted.Tag); promoted.Created == nil && Equal(listed.Digest, promoted.Digest) {
		promoted.Created = listed.Created
	}
	return promoted
}

// LastIndex returns the last position of a tag; -1 if it is missing. Other writers may
// have listed a tag twice.
func LastIndex(ledger []v1alpha1.VersionInfo, tag string) int {
	for i, release := range slices.Backward(ledger) {
		if release.Tag == tag {
			return i
		}
	}
	return -1
}

// CandidatesAfterRollback returns the tags that rollbacks can make candidates: everything
// newer than the oldest release, in the policy's order, that the history can go back to.
func CandidatesAfterRollback(ledger []v1alpha1.VersionInfo, history []v1alpha1.DeploymentHistoryEntry, policy Policy) map[string]bool {
	oldest := -1
	for i := range history {
		if history[i].State() != v1alpha1.BakeSucceeded || PositionOf(ledger, history[i:i+1], policy).Entry == nil {
			continue
		}
		if oldest < 0 || isOlder(ledger, history[i].Version, history[oldest].Version, policy.Order) {
			oldest = i
		}
	}
	if oldest < 0 {
		return nil
	}
	return TagsOf(Candidates(ledger, history[oldest:oldest+1], policy))
}

// isOlder reports whether release a comes before release b, in the policy's order or else
// in the order in which they appeared.
func isOlder(ledger []v1alpha1.VersionInfo, a, b v1alpha1.VersionInfo, order Order) bool {
	if order.Kind() == ByAppearance {
		return LastIndex(ledger, a.Tag) < LastIndex(ledger, b.Tag)
	}
	return order.Placed(AsListed(ledger, a)).inList(order.Placed(AsListed(ledger, b))) < 0
}
