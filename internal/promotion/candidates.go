// SPDX-License-Identifier: Apache-2.0

package promotion

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
// tag is listed twice, only the newest of its releases counts.
func Candidates(ledger []v1alpha1.VersionInfo, history []v1alpha1.DeploymentHistoryEntry, policy Policy) []v1alpha1.VersionInfo {
	deployed := positionOf(ledger, history, policy)
	var candidates []v1alpha1.VersionInfo
	for i, release := range ledger {
		if deployed.mayBeNewer(release, i) && !isCurrent(history, release, policy) && IsTag(release.Tag) && policy.Order.Admits(release.Tag) {
			candidates = append(candidates, release)
		}
	}
	slices.Reverse(candidates)
	return eachOnce(candidates)
}

// position is what candidates must be newer than. Without an entry, every release is newer.
type position struct {
	entry *v1alpha1.DeploymentHistoryEntry
	placed
	order Order
	index int // in the known releases; -1 if it is not among them
}

// mayBeNewer reports whether a release is newer, or may be. The index is that of the
// release in the known releases.
func (p position) mayBeNewer(release v1alpha1.VersionInfo, index int) bool {
	if p.entry == nil {
		return true
	}
	switch p.order.placed(release).relation(p.placed) {
	case newer, sameVersion:
		return true
	case unranked:
		return p.order.Kind() == ByAppearance && p.index >= 0 && index > p.index
	case older, sameRelease:
	}
	return false
}

// eachOnce returns the first release of each tag.
func eachOnce(releases []v1alpha1.VersionInfo) []v1alpha1.VersionInfo {
	seen := make(map[string]bool, len(releases))
	return slices.DeleteFunc(releases, func(v v1alpha1.VersionInfo) bool {
		again := seen[v.Tag]
		seen[v.Tag] = true
		return again
	})
}

// candidatesOf returns the candidates of the Rollout's policy. While the policy does not
// exist or cannot be read, nobody knows what it admits and in which order. In that case,
// the candidates are those that the status still lists.
func candidatesOf(in Input, ledger []v1alpha1.VersionInfo) []v1alpha1.VersionInfo {
	candidates := Candidates(ledger, in.Rollout.Status.History, in.Policy)
	if !in.Policy.Blocking || in.Policy.Order.isKnown() {
		return candidates
	}
	listed := make(map[string]bool, len(in.Rollout.Status.ReleaseCandidates))
	for i := range in.Rollout.Status.ReleaseCandidates {
		listed[in.Rollout.Status.ReleaseCandidates[i].Tag] = true
	}
	return slices.DeleteFunc(candidates, func(v v1alpha1.VersionInfo) bool { return !listed[v.Tag] })
}

// withdrawn returns a function that reports whether a release is known to be deleted from
// the registry. The release that the policy names is available, whatever an older copy of
// the scan shows.
func (p Policy) withdrawn() func(tag string) bool {
	if !p.Complete {
		return func(string) bool { return false }
	}
	there := make(map[string]bool, len(p.Scanned)+1)
	for _, tag := range p.Scanned {
		there[tag] = true
	}
	if p.Latest != nil {
		there[p.Latest.Tag] = true
	}
	return func(tag string) bool { return !there[tag] }
}

// isCurrent reports whether the release is deployed now. The position is not enough if
// the policy cannot rank the release, or if the known releases list it twice.
func isCurrent(history []v1alpha1.DeploymentHistoryEntry, release v1alpha1.VersionInfo, policy Policy) bool {
	return len(history) > 0 && history[0].Version.Tag == release.Tag && !policy.isOfAnother(&history[0])
}

// positionOf returns what candidates must be newer than. This is the current release. If
// the policy cannot rank it, as after a pin to a custom build, it is the newest entry that
// can be ranked. There is none if no entry can be ranked, or if the newest one is of
// another image.
func positionOf(ledger []v1alpha1.VersionInfo, history []v1alpha1.DeploymentHistoryEntry, policy Policy) position {
	order := policy.Order
	if beforeMove(history, policy) != nil {
		return position{}
	}
	for i := range history {
		entry := &history[i]
		at := lastIndex(ledger, entry.Version.Tag)
		ranks := order.Comparable(entry.Version.Tag) || order.Kind() == ByAppearance && at >= 0
		if ranks && !policy.isOfAnother(entry) {
			return position{entry, order.placed(asListed(ledger, entry.Version)), order, at}
		}
	}
	return position{}
}

// asListed adds to a release that was promoted what is known of the same content since.
func asListed(ledger []v1alpha1.VersionInfo, promoted v1alpha1.VersionInfo) v1alpha1.VersionInfo {
	if listed := known(ledger, promoted.Tag); promoted.Created == nil && equal(listed.Digest, promoted.Digest) {
		promoted.Created = listed.Created
	}
	return promoted
}

// lastIndex returns the last position of a tag; -1 if it is missing. Other writers may
// have listed a tag twice.
func lastIndex(ledger []v1alpha1.VersionInfo, tag string) int {
	for i, release := range slices.Backward(ledger) {
		if release.Tag == tag {
			return i
		}
	}
	return -1
}
