// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Metadata is what the registry reports about the image of one release. A text is empty
// if the image does not have it.
type Metadata struct {
	// Tag of the release.
	Tag string
	// Digest of the image that was read; never empty.
	Digest string
	// Version and Revision of the source that the image was built from.
	Version, Revision string
	// Created is when the image was built; zero if it is not known.
	Created time.Time
	// ArtifactType is the media type of the kind of artifact.
	ArtifactType string
	// Source, Title and Description are for users.
	Source, Title, Description string
	// ForwardOnly is true if the image is marked so that no rollback goes back past it. A
	// mark that cannot be read counts as true.
	ForwardOnly bool
	// Manifests are the digests of the images that an index lists, at most
	// [MostManifests].
	Manifests []string
}

// MostManifests is how many images of an index are stored. An index has one image for
// each platform, and one that attests to it.
const MostManifests = 32

// MissingMetadata returns the releases, known or in the history, whose metadata is missing from
// the status and fits into it, newest first. Metadata counts as missing while neither
// revision nor creation time is known. In the status, an image that has neither looks
// like one that has not been read. Before them come the releases that a rollback would go
// back past, while it is not known whether they are forward-only.
func MissingMetadata(in Input) []v1alpha1.VersionInfo {
	ledger, _ := grow(in)
	kept := fitToLimit(in, ledger, "")
	lacking := lacking{noted: map[image]bool{}}
	for _, release := range marksToAsk(in) {
		lacking.note(release)
	}
	for i, v := range slices.Backward(kept.ledger) {
		describes := i == len(kept.ledger)-1 // the Rollout itself
		if !hasMetadata(v) && !kept.omitted[v.Tag] || describes && in.Rollout.Status.ArtifactType == nil {
			lacking.note(v)
		}
	}
	for _, release := range in.knownEntries() {
		if !hasMetadata(release) {
			lacking.note(release)
		}
	}
	if in.Targets.mismatch() {
		lacking.note(in.Rollout.Current().Version)
	}
	return lacking.releases
}

// lacking collects the releases that the registry is asked for, each image once.
type lacking struct {
	releases []v1alpha1.VersionInfo
	noted    map[image]bool
}

type image struct{ tag, digest string }

func (l *lacking) note(v v1alpha1.VersionInfo) {
	key := image{v.Tag, orEmpty(v.Digest)}
	if IsTag(v.Tag) && !l.noted[key] {
		l.noted[key] = true
		l.releases = append(l.releases, v)
	}
}

func hasMetadata(v v1alpha1.VersionInfo) bool { return v.Revision != nil || v.Created != nil }

// ResolveMetadata adds what is known from the registry to a status: to the history, and, from the
// newest known release, to the fields that describe the Rollout. Facts that are already
// known stay, and so does the digest with which an entry was deployed. Afterwards, what
// does not fit into the status is dropped from the history.
func ResolveMetadata(in Input, status *v1alpha1.RolloutStatus) {
	for i := range status.History {
		status.History[i].Version = completedEntry(in, status.History, i)
	}
	status.History = historyToLimit(in, status)
	if len(status.AvailableReleases) == 0 {
		return
	}
	newest := status.AvailableReleases[len(status.AvailableReleases)-1]
	if m := metadataOf(in, newest); m != nil {
		status.ArtifactType, status.Source = text(truncate.Text(m.ArtifactType, longestName)), text(truncate.Text(m.Source, longestMessage))
		status.Title, status.Description = text(truncate.Text(m.Title, longestName)), text(truncate.Text(m.Description, longestMessage))
	}
}

// Texts of images are cut to these numbers of characters, because each release contains
// them.
const (
	longestVersion  = 128
	longestRevision = 256
)

// completed returns the release with the metadata from the registry.
func completed(in Input, v v1alpha1.VersionInfo) v1alpha1.VersionInfo {
	m := metadataOf(in, v)
	if m == nil {
		return v
	}
	v.ForwardOnly = markOf(in, v, m)
	v.Digest = orElse(v.Digest, m.Digest)
	v.Version = orElse(v.Version, truncate.Text(m.Version, longestVersion))
	v.Revision = orElse(v.Revision, truncate.Text(m.Revision, longestRevision))
	if v.Created == nil && !m.Created.IsZero() {
		v.Created = &metav1.Time{Time: m.Created.Truncate(time.Second)}
	}
	return v
}

// completedEntry returns the release of an entry with the metadata from the registry.
func completedEntry(in Input, history []v1alpha1.DeploymentHistoryEntry, i int) v1alpha1.VersionInfo {
	if release, ok := in.ofEntry(history, i); ok && metadataOf(in, release) != nil {
		return completed(in, release)
	}
	return history[i].Version
}

func allCompleted(in Input, releases []v1alpha1.VersionInfo) []v1alpha1.VersionInfo {
	releases = slices.Clone(releases)
	for i := range releases {
		releases[i] = completed(in, releases[i])
	}
	return releases
}

// metadataOf returns the metadata of the image of a release; nil if it is not known. If
// the tag points to other content now, its metadata is not about the release.
func metadataOf(in Input, v v1alpha1.VersionInfo) *Metadata {
	i := slices.IndexFunc(in.Metadata, func(m Metadata) bool {
		return m.Tag == v.Tag && (v.Digest == nil || *v.Digest == m.Digest)
	})
	if i < 0 {
		return nil
	}
	return &in.Metadata[i]
}

// noteMetadata marks new metadata as worth a write of its own, unless a promotion is just being
// deployed. Then the metadata is stored with the next change of that promotion, or after
// a while without it.
func (d *Decision) noteMetadata(in Input) {
	if len(d.Notes) == 0 && !resolvesMore(in, d.Ledger) {
		return
	}
	current := in.Rollout.Current()
	if len(d.Notes) == 0 && current.State() == v1alpha1.BakeDeploying {
		if due := current.Cutoff().Add(Patience); in.Now.Before(due) {
			d.lookAt(due)
			return
		}
	}
	d.MetadataResolved = true
}

// resolvesMore reports whether the registry reports anything that is not stored.
func resolvesMore(in Input, ledger []v1alpha1.VersionInfo) bool {
	before := in.Rollout.Status
	fills := func(v v1alpha1.VersionInfo) bool { return completed(in, v) != v }
	if slices.ContainsFunc(before.AvailableReleases, fills) {
		return true
	}
	for i := range before.History {
		if completedEntry(in, before.History, i) != before.History[i].Version {
			return true
		}
	}
	after := v1alpha1.RolloutStatus{
		AvailableReleases: ledger,
		ArtifactType:      before.ArtifactType, Source: before.Source, Title: before.Title, Description: before.Description,
	}
	ResolveMetadata(in, &after)
	return !equal(before.ArtifactType, after.ArtifactType) || !equal(before.Source, after.Source) ||
		!equal(before.Title, after.Title) || !equal(before.Description, after.Description)
}

func text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func orElse(known *string, found string) *string {
	if known != nil {
		return known
	}
	return text(found)
}
