// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// importance decides which of the known releases stay.
func importance(rollout *v1alpha1.Rollout, policy releases.Policy, gates Gates, promoted string) releases.Importance {
	allowed := func(tag string) bool {
		return namedByGates(gates.Gates, releases.Known(rollout.Status.AvailableReleases, tag))
	}
	return releases.Importance{Rollout: rollout, Policy: policy, Promoted: promoted, Allowed: allowed}
}

// MissingMetadata returns the releases, known or in the history, whose metadata is missing from
// the status and fits into it, newest first. Metadata counts as missing while neither
// revision nor creation time is known. In the status, an image that has neither looks
// like one that has not been read. Before them come the releases that a rollback would go
// back past, while it is not known whether they are forward-only.
func MissingMetadata(in Input) []v1alpha1.VersionInfo {
	ledger, _ := in.grow()
	kept := importance(in.Rollout, in.Policy, in.Gates, "").Fit(ledger)
	lacking := releases.Lacking{}
	for _, release := range marksToAsk(in) {
		lacking.Note(release)
	}
	if wanted := releases.Name(in.Policy.Chosen(in.Rollout)).In(ledger); in.lacksDigest(wanted) {
		lacking.Note(wanted)
	}
	for i, v := range slices.Backward(kept.Ledger) {
		describes := i == len(kept.Ledger)-1 // the Rollout itself
		if in.lacks(v) && !kept.Omitted[v.Tag] || describes && in.Rollout.Status.ArtifactType == nil {
			lacking.Note(v)
		}
	}
	for _, release := range in.Content().KnownEntries() {
		if in.lacks(release) {
			lacking.Note(release)
		}
	}
	if in.Targets.Mismatch() {
		lacking.Note(in.Rollout.Current().Version)
	}
	return lacking.Releases
}

// lacks reports whether metadata of a release is missing: all of it, or the digest if a target
// gets that, or people approve it.
func (in Input) lacks(v v1alpha1.VersionInfo) bool {
	return !releases.HasMetadata(v) || in.Targets.Pinned != content.NonePinned && v.Digest == nil || in.lacksDigest(v)
}

// lacksDigest reports whether a release lacks the digest that people approve.
func (in Input) lacksDigest(v v1alpha1.VersionInfo) bool {
	return v.Digest == nil && len(in.Gates.asking()) > 0
}

// ResolveMetadata adds what is known from the registry to a status: to the history, and, from the
// newest known release, to the fields that describe the Rollout. Facts that are already
// known stay, and so does the digest with which an entry was deployed. Afterwards, what
// does not fit into the status is dropped from the history.
func ResolveMetadata(in Input, status *v1alpha1.RolloutStatus) {
	for i := range status.History {
		status.History[i].Version = completedEntry(in.Content(), in.registry(), status.History, i)
	}
	status.History = releases.HistoryToLimit(status.History, func() []bool {
		return retainedEntries(in.Rollout, in.Policy, in.holding(), status.History, status.AvailableReleases)
	})
	if len(status.AvailableReleases) == 0 {
		return
	}
	newest := status.AvailableReleases[len(status.AvailableReleases)-1]
	if m := in.registry().MetadataOf(newest); m != nil {
		status.ArtifactType, status.Source = releases.OrNil(truncate.Text(m.ArtifactType, verdict.LongestName)), releases.OrNil(truncate.Text(m.Source, verdict.LongestMessage))
		status.Title, status.Description = releases.OrNil(truncate.Text(m.Title, verdict.LongestName)), releases.OrNil(truncate.Text(m.Description, verdict.LongestMessage))
	}
}

// completedEntry returns the release of an entry with the metadata from the registry.
func completedEntry(r content.Running, registry releases.Registry, history []v1alpha1.DeploymentHistoryEntry, i int) v1alpha1.VersionInfo {
	if release, ok := r.OfEntry(history, i); ok && registry.MetadataOf(release) != nil {
		return registry.Completed(release)
	}
	return history[i].Version
}

// metadataResolved reports whether new metadata is worth a write of its own, and when it will
// be. While a promotion is just being deployed, the metadata is stored with its next change,
// or after a while without it.
func metadataResolved(in Input, ledger []v1alpha1.VersionInfo, notes []verdict.Note) (bool, time.Time) {
	if len(notes) == 0 && !resolvesMore(in, ledger) {
		return false, time.Time{}
	}
	current := in.Rollout.Current()
	if len(notes) == 0 && current.State() == v1alpha1.BakeDeploying {
		if due := current.Cutoff().Add(Patience); in.Now.Before(due) {
			return false, due
		}
	}
	return true, time.Time{}
}

// resolvesMore reports whether the registry reports anything that is not stored.
func resolvesMore(in Input, ledger []v1alpha1.VersionInfo) bool {
	before := in.Rollout.Status
	fills := func(v v1alpha1.VersionInfo) bool { return in.registry().Completed(v) != v }
	if slices.ContainsFunc(before.AvailableReleases, fills) {
		return true
	}
	for i := range before.History {
		if completedEntry(in.Content(), in.registry(), before.History, i) != before.History[i].Version {
			return true
		}
	}
	after := v1alpha1.RolloutStatus{
		AvailableReleases: ledger,
		ArtifactType:      before.ArtifactType, Source: before.Source, Title: before.Title, Description: before.Description,
	}
	ResolveMetadata(in, &after)
	return !releases.Equal(before.ArtifactType, after.ArtifactType) || !releases.Equal(before.Source, after.Source) ||
		!releases.Equal(before.Title, after.Title) || !releases.Equal(before.Description, after.Description)
}
