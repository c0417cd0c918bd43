// SPDX-License-Identifier: Apache-2.0

// Package artifact makes the OCI artifacts that Flux deploys from: manifests in an
// archive, with the media types of Flux.
package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// The media types of a Flux artifact.
const (
	configType  types.MediaType = "application/vnd.cncf.flux.config.v1+json"
	contentType types.MediaType = "application/vnd.cncf.flux.content.v1.tar+gzip"
)

// The annotations of an artifact that Flux shows, and that the controller shows for a
// release.
const (
	// CreatedAnnotation is a time in the form of RFC 3339.
	CreatedAnnotation = "org.opencontainers.image.created"
	// SourceAnnotation is the URL of the source that the artifact was made from.
	SourceAnnotation = "org.opencontainers.image.source"
	// RevisionAnnotation is the revision of the source, for example v1.2.0@sha1:<commit>.
	RevisionAnnotation = "org.opencontainers.image.revision"
)

// Artifact is a set of files with annotations. The same artifact always has the same
// digest, wherever and whenever it is made: the files in the archive are sorted by name,
// and have no times or owners.
type Artifact struct {
	// Files maps the path of each file, with slashes, to its content.
	Files map[string]string
	// Annotations are the annotations of the manifest.
	Annotations map[string]string
}

// Push stores the artifact under a tag and returns its digest.
func Push(ctx context.Context, tag name.Tag, a Artifact, options ...remote.Option) (string, error) {
	image, err := a.image()
	if err != nil {
		return "", fmt.Errorf("make the artifact %s: %w", tag, err)
	}
	if err := remote.Write(tag, image, append(options, remote.WithContext(ctx))...); err != nil {
		return "", fmt.Errorf("push %s: %w", tag, err)
	}
	digest, err := image.Digest()
	if err != nil {
		return "", fmt.Errorf("compute the digest of %s: %w", tag, err)
	}
	return digest.String(), nil
}

// Manifests returns the YAML files of a folder and its subfolders, without the skipped
// folders.
func Manifests(folder fs.FS, skipped ...string) (map[string]string, error) {
	files := map[string]string{}
	err := fs.WalkDir(folder, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains(skipped, name):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".yaml":
			return nil
		}
		content, err := fs.ReadFile(folder, name)
		files[name] = string(content)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the manifests: %w", err)
	}
	return files, nil
}

func (a Artifact) image() (v1.Image, error) {
	content, err := Archive(a.Files)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), configType)
	image, err = mutate.AppendLayers(image, static.NewLayer(content, contentType))
	if err != nil {
		return nil, err
	}
	return mutate.Annotations(image, a.Annotations).(v1.Image), nil
}

// Archive packs files, sorted by name and without times.
func Archive(files map[string]string) ([]byte, error) {
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
