// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Registry is what the registry reports about the images of releases, as far as it is known.
type Registry struct {
	// Images of the releases.
	Images []Metadata
	// Marks is true if the status says of releases whether they are forward-only.
	Marks bool
}

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

// HasMetadata reports whether anything is known that the registry reports of a release.
func HasMetadata(v v1alpha1.VersionInfo) bool { return v.Revision != nil || v.Created != nil }

// Texts of images are cut to these numbers of characters, because each release contains
// them.
const (
	longestVersion  = 128
	longestRevision = 256
)

// Completed returns the release with the metadata from the registry.
func (r Registry) Completed(v v1alpha1.VersionInfo) v1alpha1.VersionInfo {
	m := r.MetadataOf(v)
	if m == nil {
		return v
	}
	v.ForwardOnly = r.markOf(v, m)
	v.Digest = orElse(v.Digest, m.Digest)
	v.Version = orElse(v.Version, truncate.Text(m.Version, longestVersion))
	v.Revision = orElse(v.Revision, truncate.Text(m.Revision, longestRevision))
	if v.Created == nil && !m.Created.IsZero() {
		v.Created = &metav1.Time{Time: m.Created.Truncate(time.Second)}
	}
	return v
}

func (r Registry) allCompleted(all []v1alpha1.VersionInfo) []v1alpha1.VersionInfo {
	all = slices.Clone(all)
	for i := range all {
		all[i] = r.Completed(all[i])
	}
	return all
}

// MetadataOf returns the metadata of the image of a release; nil if it is not known. If
// the tag points to other content now, its metadata is not about the release.
func (r Registry) MetadataOf(v v1alpha1.VersionInfo) *Metadata {
	i := slices.IndexFunc(r.Images, func(m Metadata) bool {
		return m.Tag == v.Tag && (v.Digest == nil || *v.Digest == m.Digest)
	})
	if i < 0 {
		return nil
	}
	return &r.Images[i]
}

// Lacking collects the releases that the registry is asked for, each image once.
type Lacking struct {
	Releases []v1alpha1.VersionInfo
	noted    map[image]bool
}

type image struct{ tag, digest string }

// Note adds a release, unless its image is noted already.
func (l *Lacking) Note(v v1alpha1.VersionInfo) {
	key := image{v.Tag, OrEmpty(v.Digest)}
	if IsTag(v.Tag) && !l.noted[key] {
		if l.noted == nil {
			l.noted = map[image]bool{}
		}
		l.noted[key] = true
		l.Releases = append(l.Releases, v)
	}
}

// OrNil returns the text; nil if it is empty.
func OrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// OrEmpty returns the text; empty if there is none.
func OrEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func orElse(known *string, found string) *string {
	if known != nil {
		return known
	}
	return OrNil(found)
}

// markOf returns whether a release is forward-only; nil if it is not known. What is known
// of its content stays. Without a digest nobody knows whether that was the content that
// the registry reports now.
func (r Registry) markOf(v v1alpha1.VersionInfo, m *Metadata) *bool {
	if !r.Marks || v.ForwardOnly != nil && v.Digest != nil {
		return v.ForwardOnly
	}
	mark := m.ForwardOnly
	return &mark
}
