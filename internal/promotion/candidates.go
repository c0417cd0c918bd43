// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Candidates returns the releases of the ledger that are newer than what the
// history says is deployed, and that the policy admits, newest first. What
// cannot be a tag is none, however it came into the ledger.
//
// Newer is what the policy's order says; among equals, and where nothing can be
// compared, what stands later in the ledger.
func Candidates(ledger []v1alpha1.VersionInfo, history []v1alpha1.DeploymentHistoryEntry, order Order) []v1alpha1.VersionInfo {
	position := positionOf(ledger, history, order)
	at, place := lastIndex(ledger, position), order.place(position)
	var newer []v1alpha1.VersionInfo
	for i, release := range ledger {
		isNewer := position == "" || order.place(release.Tag).isNewer(place, at >= 0 && i > at)
		if isNewer && !isCurrent(history, release) && IsTag(release.Tag) && order.Admits(release.Tag) {
			newer = append(newer, release)
		}
	}
	slices.Reverse(newer)
	return newer
}

// candidatesOf are the candidates of the Rollout's policy. While that does not exist, or
// cannot be read, nobody knows what it admits and in which order: then they are those that
// the status lists still.
func candidatesOf(in Input, ledger []v1alpha1.VersionInfo) []v1alpha1.VersionInfo {
	candidates := Candidates(ledger, in.Rollout.Status.History, in.Policy.Order)
	if !in.Policy.Blocking || in.Policy.Order.isKnown() {
		return candidates
	}
	listed := make(map[string]bool, len(in.Rollout.Status.ReleaseCandidates))
	for i := range in.Rollout.Status.ReleaseCandidates {
		listed[in.Rollout.Status.ReleaseCandidates[i].Tag] = true
	}
	return slices.DeleteFunc(candidates, func(v v1alpha1.VersionInfo) bool { return !listed[v.Tag] })
}

// withdrawn tells which releases are known to be gone from the registry. What the
// policy names is on offer, whatever an older copy of the scan says.
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

// isCurrent reports whether the release is deployed now. The position cannot
// tell if the policy cannot rank it, or if the ledger lists it twice.
func isCurrent(history []v1alpha1.DeploymentHistoryEntry, release v1alpha1.VersionInfo) bool {
	return len(history) > 0 && history[0].Version.Tag == release.Tag
}

// positionOf is the tag that candidates must be newer than: the current one,
// or if that cannot be ranked, as after a pin to a custom build, the newest
// entry that can. Empty means that nothing ranks: every release is newer.
func positionOf(ledger []v1alpha1.VersionInfo, history []v1alpha1.DeploymentHistoryEntry, order Order) string {
	for _, entry := range history {
		if order.Comparable(entry.Version.Tag) || order.Kind() == ByAppearance && contains(ledger, entry.Version.Tag) {
			return entry.Version.Tag
		}
	}
	return ""
}

// lastIndex is where a tag appeared last. Others may have listed it twice.
func lastIndex(ledger []v1alpha1.VersionInfo, tag string) int {
	for i, release := range slices.Backward(ledger) {
		if release.Tag == tag {
			return i
		}
	}
	return -1
}
