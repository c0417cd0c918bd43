// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"fmt"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/imagename"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// WayOut returns how to continue after the newest history entry has failed: what the
// controller does, or else what a user can do, and which release is good to go back to.
func WayOut(in Input) string {
	back, _ := standing(in, in.Rollout.Status.AvailableReleases, "")
	switch {
	case back.Reason == "":
		return goOn(in)
	case back.waits():
		return back.Message
	}
	return back.Message + "; " + goOn(in)
}

// goOn returns what a user can do.
func goOn(in Input) string {
	good, _ := provenUntil(in)
	if good == nil {
		return "no good release is known; pin another one with spec.wantedVersion, or annotate with retry or unblock-failed"
	}
	return fmt.Sprintf("last good release: %s; roll back with spec.wantedVersion, or annotate with retry or unblock-failed",
		truncate.Text(good.Version.Tag, releases.LongestOfOld))
}

// provenUntil returns the entry of the release that is good to go back to, nil if the history
// has none, and when time alone makes it a newer one: when the first quarantine of such a
// release ends. Zero means never.
func provenUntil(in Input) (*v1alpha1.DeploymentHistoryEntry, time.Time) {
	i, until := provenIn(in.Policy, in.holding(), in.Rollout.Status.History, in.Rollout.Status.AvailableReleases)
	if i < 0 {
		return nil, until
	}
	return &in.Rollout.Status.History[i], until
}

// provenIn returns the index of the newest entry that has succeeded, and whose release has
// neither failed nor been withdrawn from the registry since. It returns -1 if there is
// none. The release must be other content than the newest entry's, under another tag: a
// tag brings back the content that failed. It must also be what its tag still points to,
// as far as is known, of the image that the policy ranks, and not be known to be bad
// elsewhere. The time is when that may have ended for a newer one.
func provenIn(policy releases.Policy, bad quarantined.Holding, history []v1alpha1.DeploymentHistoryEntry, ledger []v1alpha1.VersionInfo) (int, time.Time) {
	failed, withdrawn, until := map[string]bool{}, policy.Withdrawn(), time.Time{}
	for i := range history {
		version := &history[i].Version
		switch state := history[i].State(); {
		case imagename.Differ(history[i].Image, cmp.Or(policy.Ranked(), history[0].Image)): // its tag is another release now
		case i == 0 || state == v1alpha1.BakeFailed:
			failed[version.Tag] = true
		case state != v1alpha1.BakeSucceeded || failed[version.Tag] || withdrawn(version.Tag):
		case isSameOrChanged(version, &history[0].Version, releases.Known(ledger, version.Tag)):
		case bad.KnownBad(*version) != nil:
			if end := bad.KnownBad(*version).Until(); quarantined.EndsLater(until, end) {
				until = end
			}
		default:
			return i, until
		}
	}
	return -1, until
}

// isSameOrChanged reports whether the tag of a release brings back the content that runs
// now, or points to other content than the release had.
func isSameOrChanged(version, current *v1alpha1.VersionInfo, listed v1alpha1.VersionInfo) bool {
	return releases.IsSame(version.Digest, current.Digest) || releases.Differs(version.Digest, listed.Digest)
}
