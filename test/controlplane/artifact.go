// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The media types by which Flux knows an artifact of its own.
const (
	fluxConfigType  types.MediaType = "application/vnd.cncf.flux.config.v1+json"
	fluxContentType types.MediaType = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// Artifact is what Flux deploys: manifests under a tag of a repository.
type Artifact struct {
	Repository string
	Tag        string
	// Files maps the name of each manifest to its content.
	Files map[string]string
	// Annotations are added to org.opencontainers.image.created, source and
	// revision, or replace them; an empty value leaves one out.
	Annotations map[string]string
}

// Push stores an artifact and returns its digest. Equal artifacts have equal
// digests only if they name their time of creation.
func (r *Registry) Push(ctx context.Context, a Artifact) (string, error) {
	ref, err := r.reference(a.Repository, a.Tag)
	if err != nil {
		return "", err
	}
	image, err := a.image()
	if err != nil {
		return "", fmt.Errorf("build the artifact %s: %w", ref, err)
	}
	if err := remote.Write(ref, image, r.options(ctx)...); err != nil {
		return "", fmt.Errorf("push %s: %w", ref, err)
	}
	digest, err := image.Digest()
	if err != nil {
		return "", fmt.Errorf("compute the digest of %s: %w", ref, err)
	}
	return digest.String(), nil
}

func (a Artifact) image() (v1.Image, error) {
	content, err := archive(a.Files)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), fluxConfigType)
	image, err = mutate.AppendLayers(image, static.NewLayer(content, fluxContentType))
	if err != nil {
		return nil, err
	}
	return mutate.Annotations(image, a.annotations()).(v1.Image), nil
}

func (a Artifact) annotations() map[string]string {
	all := map[string]string{
		"org.opencontainers.image.created":  time.Now().UTC().Format(time.RFC3339),
		"org.opencontainers.image.source":   "https://example.com/" + a.Repository,
		"org.opencontainers.image.revision": a.Tag,
	}
	maps.Copy(all, a.Annotations)
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}

// archive packs files in the order of their names and without their times.
func archive(files map[string]string) ([]byte, error) {
	var content bytes.Buffer
	compressed := gzip.NewWriter(&content)
	packed := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}
		if err := packed.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
		if _, err := packed.Write([]byte(files[name])); err != nil {
			return nil, fmt.Errorf("pack %s: %w", name, err)
		}
	}
	if err := packed.Close(); err != nil {
		return nil, fmt.Errorf("finish the archive: %w", err)
	}
	if err := compressed.Close(); err != nil {
		return nil, fmt.Errorf("compress the archive: %w", err)
	}
	return content.Bytes(), nil
}
