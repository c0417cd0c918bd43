// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// The annotations, and the labels in an image's config, that are read.
const (
	keyPrefix      = "org.opencontainers.image."
	keyVersion     = keyPrefix + "version"
	keyRevision    = keyPrefix + "revision"
	keyCreated     = keyPrefix + "created"
	keySource      = keyPrefix + "source"
	keyTitle       = keyPrefix + "title"
	keyDescription = keyPrefix + "description"

	// keyForwardOnly marks an image that no automatic rollback goes back past. Its values
	// are "true" and "false". Any other value cannot be read, and counts as true.
	keyForwardOnly = "com.kuberik.rollout.forward-only"
)

var keys = []string{keyVersion, keyRevision, keyCreated, keySource, keyTitle, keyDescription}

// manifest contains the relevant fields of an image manifest or an index.
type manifest struct {
	MediaType    string            `json:"mediaType"`
	ArtifactType string            `json:"artifactType"`
	Config       *v1.Descriptor    `json:"config"`
	Manifests    []v1.Descriptor   `json:"manifests"`
	Annotations  map[string]string `json:"annotations"`
}

// found collects texts by their keys. The first source that has a key wins. It has
// keyForwardOnly if any source marks the image.
type found map[string]string

func (f found) addManifest(m manifest) {
	f.add(annotations(m))
	if m.Config != nil {
		f.mark(m.Config.Annotations)
	}
	for i := range m.Manifests {
		f.mark(m.Manifests[i].Annotations)
	}
}

func (f found) add(texts map[string]string) {
	f.mark(texts)
	for _, key := range keys {
		if f[key] == "" {
			f[key] = shorten(texts[key])
		}
	}
}

func (f found) mark(texts map[string]string) {
	if value, ok := texts[keyForwardOnly]; ok && value != "false" {
		f[keyForwardOnly] = "true"
	}
}

// complete reports whether nothing more can be found. An image is unmarked only if all
// sources are: otherwise a rollback would go past a mark in a place that was not read.
func (f found) complete() bool {
	for _, key := range keys {
		if f[key] == "" {
			return false
		}
	}
	return f[keyForwardOnly] != ""
}

// look reads the manifest, and only as much more as is needed: the image for one platform
// of an index, and the labels in the config of an image.
func look(ctx context.Context, puller *remote.Puller, ref name.Reference) (releases.Metadata, error) {
	descriptor, top, err := get(ctx, puller, ref)
	if err != nil {
		return releases.Metadata{}, err
	}
	texts := found{}
	texts.addManifest(top)
	image := descriptor
	if child := platform(top.Manifests); child != nil && !texts.complete() {
		var m manifest
		if image, m, err = get(ctx, puller, ref.Context().Digest(child.Digest.String())); err != nil {
			return releases.Metadata{}, fmt.Errorf("read the image of one platform: %w", err)
		}
		texts.addManifest(m)
	}
	if err := texts.addLabels(image); err != nil {
		return releases.Metadata{}, err
	}
	metadata := texts.metadata()
	metadata.Digest = descriptor.Digest.String()
	metadata.ArtifactType = shorten(kindOf(descriptor, top))
	for _, child := range top.Manifests[:min(len(top.Manifests), releases.MostManifests)] {
		metadata.Manifests = append(metadata.Manifests, child.Digest.String())
	}
	return metadata, nil
}

func get(ctx context.Context, puller *remote.Puller, ref name.Reference) (*remote.Descriptor, manifest, error) {
	var content manifest
	descriptor, err := puller.Get(ctx, ref)
	if err != nil {
		return nil, content, err
	}
	if err := json.Unmarshal(descriptor.Manifest, &content); err != nil {
		return nil, content, fmt.Errorf("read the manifest: %w", err)
	}
	return descriptor, content, nil
}

// annotations returns the annotations of the manifest, completed by those of its config.
func annotations(m manifest) map[string]string {
	all := map[string]string{}
	if m.Config != nil {
		maps.Copy(all, m.Config.Annotations)
	}
	maps.Copy(all, m.Annotations)
	return all
}

// addLabels adds the labels in the config of a container image. Artifacts of other kinds
// have none.
func (f found) addLabels(descriptor *remote.Descriptor) error {
	if f.complete() || !descriptor.MediaType.IsImage() {
		return nil
	}
	image, err := descriptor.Image()
	if err != nil {
		return fmt.Errorf("read the manifest: %w", err)
	}
	m, err := image.Manifest()
	if err != nil {
		return fmt.Errorf("read the manifest: %w", err)
	}
	if !m.Config.MediaType.IsConfig() {
		return nil
	}
	config, err := image.ConfigFile()
	if err != nil {
		return fmt.Errorf("read the config: %w", err)
	}
	f.add(config.Config.Labels)
	return nil
}

// platform returns the image that represents an index: linux/amd64, or else the first
// runnable image. It returns nil if there is none.
func platform(images []v1.Descriptor) *v1.Descriptor {
	var first *v1.Descriptor
	for i := range images {
		image := &images[i]
		if !image.MediaType.IsImage() || image.Platform != nil && image.Platform.OS == "unknown" {
			continue // an index, or an attestation about another image
		}
		if p := image.Platform; p != nil && p.OS == "linux" && p.Architecture == "amd64" {
			return image
		}
		first = cmp.Or(first, image)
	}
	return first
}

// kindOf returns the artifact type: the one in the manifest, or else the type of its
// config, or else the media type of the manifest.
func kindOf(descriptor *remote.Descriptor, m manifest) string {
	config := ""
	if m.Config != nil {
		config = string(m.Config.MediaType)
	}
	return cmp.Or(m.ArtifactType, config, m.MediaType, string(descriptor.MediaType))
}

func (f found) metadata() releases.Metadata {
	m := releases.Metadata{
		Version: f[keyVersion], Revision: f[keyRevision],
		Source: f[keySource], Title: f[keyTitle], Description: f[keyDescription],
		ForwardOnly: f[keyForwardOnly] != "",
	}
	m.Created = instant(f[keyCreated])
	return m
}

// instant parses a time that the API server will store. A time that it refuses, for
// example in the year 10000, would prevent the write of the whole status.
func instant(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if t = t.UTC(); err != nil || t.Year() < 1970 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// shorten limits texts that anyone with push access can have stored in the cluster.
func shorten(text string) string {
	const most = 1024
	return truncate.Text(text, most)
}
