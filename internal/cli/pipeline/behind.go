// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// identify reports whether two releases are the same one in two environments.
type identify func(a, b v1alpha1.VersionInfo) bool

// byDigest compares the digests, and the tags where a digest is not known.
func byDigest(a, b v1alpha1.VersionInfo) bool {
	return sameText(a.Digest, b.Digest, a.Tag == b.Tag)
}

// byRevision compares the revisions, and the tags where a revision is not known.
func byRevision(a, b v1alpha1.VersionInfo) bool {
	return sameText(a.Revision, b.Revision, a.Tag == b.Tag)
}

func sameText(a, b *string, unknown bool) bool {
	if a == nil || b == nil || *a == "" || *b == "" {
		return unknown
	}
	return *a == *b
}

// behind returns how many releases a Rollout is behind another one: less than 0 if it is
// ahead. It is nil if that is not known.
//
// Known releases are in the order of the ImagePolicy. Where one of the two is not known
// any more, the history of the first Rollout counts.
func behind(first, r *v1alpha1.Rollout, same identify) *int {
	target, own := first.Current(), r.Current()
	if target == nil || own == nil {
		return nil
	}
	if same(target.Version, own.Version) {
		return new(int)
	}
	for _, known := range [][]v1alpha1.VersionInfo{r.Status.AvailableReleases, first.Status.AvailableReleases} {
		here, there := rank(known, own.Version, same), rank(known, target.Version, same)
		if here >= 0 && there >= 0 && here != there {
			n := there - here
			return &n
		}
	}
	return sinceDeployed(first.Status.History, own.Version, same)
}

// rank returns the place of a release in the order of the ImagePolicy, -1 if it is not
// known. A tag that is listed twice has the newer place.
func rank(known []v1alpha1.VersionInfo, release v1alpha1.VersionInfo, same identify) int {
	for i, other := range slices.Backward(known) {
		if same(other, release) {
			return i
		}
	}
	return -1
}

// sinceDeployed returns how many releases were promoted after a release; nil if it was not
// promoted there, as far as the history goes back.
func sinceDeployed(history []v1alpha1.DeploymentHistoryEntry, release v1alpha1.VersionInfo, same identify) *int {
	var newer []v1alpha1.VersionInfo
	for i := range history {
		version := history[i].Version
		if same(version, release) {
			n := len(newer)
			return &n
		}
		if !slices.ContainsFunc(newer, func(v v1alpha1.VersionInfo) bool { return same(v, version) }) {
			newer = append(newer, version)
		}
	}
	return nil
}
