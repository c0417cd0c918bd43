// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/imagename"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

// attempt is a rollback that may be possible.
type attempt struct {
	content.Running
	now       time.Time
	registry  releases.Registry
	schedules []Window
	// metadataOff is true if the controller does not read the registry.
	metadataOff bool
	ledger      []v1alpha1.VersionInfo
	// failed is the entry to go back from.
	failed *v1alpha1.DeploymentHistoryEntry
	// to is the entry to go back to; nil if there is none.
	to *v1alpha1.DeploymentHistoryEntry
	// awaits is true if what a user chose waits for approvals.
	awaits bool
	// until is when time alone makes it another one; zero means never.
	until time.Time
}

func newAttempt(in Input, ledger []v1alpha1.VersionInfo) attempt {
	to, until := provenUntil(in.Rollout, in.Policy, in.holding())
	return attempt{
		Running: in.Content(), now: in.Now, registry: in.registry(), schedules: in.Gates.Schedules, metadataOff: in.MetadataOff,
		ledger: ledger, failed: in.Rollout.Current(), to: to, until: until,
	}
}

// provenUntil returns the entry of the release that is good to go back to, nil if the history
// has none, and when time alone makes it a newer one: when the first quarantine of such a
// release ends. Zero means never.
func provenUntil(rollout *v1alpha1.Rollout, policy releases.Policy, bad quarantined.Holding) (*v1alpha1.DeploymentHistoryEntry, time.Time) {
	i, until := provenIn(policy, bad, rollout.Status.History, rollout.Status.AvailableReleases)
	if i < 0 {
		return nil, until
	}
	return &rollout.Status.History[i], until
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
			failed[policy.FullName(*version)] = true
		case state != v1alpha1.BakeSucceeded || failed[policy.FullName(*version)] || withdrawn(version.Tag):
		case isSameOrChanged(policy, version, &history[0].Version, releases.Known(ledger, version.Tag)):
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
// now, or points to other content than the release had, which only matters if Flux pulls by
// the tag.
func isSameOrChanged(policy releases.Policy, version, current *v1alpha1.VersionInfo, listed v1alpha1.VersionInfo) bool {
	return releases.IsSame(version.Digest, current.Digest) || !policy.ByDigest && releases.Differs(version.Digest, listed.Digest)
}
