// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"errors"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// platform has the programs for an architecture.
type platform struct {
	architecture string
	programs     []file
}

// index makes an image for each platform, and the index from which a runtime takes its own.
func (r release) index(platforms []platform) (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range platforms {
		image, err := r.image(p)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: p.architecture}},
		})
	}
	return index, nil
}

// image has nothing but the programs, which have the time zones in them, and whom they trust.
func (r release) image(p platform) (v1.Image, error) {
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS: "linux", Architecture: p.architecture, Created: v1.Time{Time: r.created}, Config: r.config(),
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	for _, f := range append([]file{{"etc/ssl/certs/ca-certificates.crt", 0o644, authorities()}}, p.programs...) {
		if image, err = r.add(image, f); err != nil {
			return nil, err
		}
	}
	return image, nil
}

// config has what the Dockerfile says below its last FROM. A test compares the two.
func (r release) config() v1.Config {
	return v1.Config{
		User:       "65532:65532",
		Entrypoint: []string{"/rollout-controller"},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "rollout-controller",
			"org.opencontainers.image.description": "Promotes releases that Flux finds into the Flux objects that deploy them.",
			"org.opencontainers.image.source":      "https://github.com/fluxrollouts/rollout-controller",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.version":     r.reference.TagStr(),
			"org.opencontainers.image.revision":    r.revision,
		},
	}
}

type file struct {
	name    string
	mode    int64
	content []byte
}

// add adds a layer with one file.
func (r release) add(image v1.Image, f file) (v1.Image, error) {
	content, err := archive(f, r.created)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	layer, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	return mutate.Append(image, mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: r.created}, CreatedBy: "COPY /" + f.name},
	})
}

func archive(f file, at time.Time) ([]byte, error) {
	var content bytes.Buffer
	zipped := gzip.NewWriter(&content)
	packed := tar.NewWriter(zipped)
	err := packed.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: at, Format: tar.FormatUSTAR})
	if err == nil {
		_, err = packed.Write(f.content)
	}
	err = errors.Join(err, packed.Close(), zipped.Close())
	return content.Bytes(), err
}

// authorities are those of Mozilla. It trusts some only for older certificates or some
// names, which a file cannot say: they are left out.
func authorities() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes everything
		}
	}
	return text.Bytes()
}
