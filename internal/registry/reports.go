// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/fluxrollouts/rollout-controller/internal/report"
)

// A report is stored as Flux stores its artifacts, so that each registry that has those
// can have it: a manifest with a config and one layer. The layer is in the manifest, too,
// and whoever reads the report needs no second request.
const (
	reportConfig types.MediaType = "application/vnd.fluxrollouts.report.v1+json"
	reportLayer  types.MediaType = "application/vnd.dsse.envelope.v1+json"
	// emptyConfig is the content of the config. It is the same for all reports.
	emptyConfig = "{}"
)

// ErrNotReport means that the registry has something else in the place of a report.
var ErrNotReport = errors.New("it is not a report")

// Stored is a report as a registry has it. It is not verified yet.
type Stored struct {
	// Digest is that of its manifest.
	Digest string
	// Envelope is nil if the digest was known before.
	Envelope []byte
}

// Reports reads and writes reports, with the connections and credentials of a Reader.
type Reports struct {
	reader   *Reader
	sessions sessions
	configs  configs
	limits   limits
}

// NewReports returns the reports in the registries that the Reader can reach.
func NewReports(reader *Reader) *Reports { return &Reports{reader: reader} }

// Pull reads the report in a place. Known is the digest of the report that the caller
// has, or empty: while the registry has that one, nothing but its digest is requested. It
// returns within seconds. The error is ErrNotFound, ErrNotReport or ErrInvalid if a retry
// does not help as long as nobody changes the place or what is there. It is a Busy if the
// registry asked to wait.
func (r *Reports) Pull(ctx context.Context, place Place, known string) (Stored, error) {
	var stored Stored
	err := r.ask(ctx, place, transport.PullScope, func(ctx context.Context, tag name.Tag, options []remote.Option) error {
		puller, err := remote.NewPuller(options...)
		if err == nil {
			stored, err = pull(ctx, puller, tag, known)
		}
		return err
	})
	if err != nil {
		return Stored{}, fmt.Errorf("read the report %s: %w", place, err)
	}
	return stored, nil
}

func pull(ctx context.Context, puller *remote.Puller, tag name.Tag, known string) (Stored, error) {
	if known != "" {
		head, err := puller.Head(ctx, tag)
		switch {
		case err == nil && head.Digest.String() == known:
			return Stored{Digest: known}, nil
		case err != nil && !unclear(err):
			return Stored{}, err
		}
	}
	answer, err := puller.Get(ctx, tag)
	if err != nil {
		return Stored{}, err
	}
	stored := Stored{Digest: answer.Digest.String()}
	if stored.Digest != known {
		stored.Envelope, err = envelopeIn(answer.Manifest)
	}
	return stored, err
}

// envelopeIn returns the layer in the manifest of a report.
func envelopeIn(text []byte) ([]byte, error) {
	var m v1.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%w: its manifest cannot be read", ErrNotReport)
	}
	if m.Config.MediaType != reportConfig {
		return nil, fmt.Errorf("%w: the type of its config is %q", ErrNotReport, shorten(string(m.Config.MediaType)))
	}
	if len(m.Layers) != 1 || m.Layers[0].MediaType != reportLayer {
		return nil, fmt.Errorf("%w: its only layer must be of type %s", ErrNotReport, reportLayer)
	}
	layer := m.Layers[0]
	digest, size, err := v1.SHA256(bytes.NewReader(layer.Data))
	switch {
	case err != nil || digest != layer.Digest || size != layer.Size:
		return nil, fmt.Errorf("%w: the layer in its manifest is not the one with the digest %s", ErrNotReport, layer.Digest)
	case size > report.MostBytes:
		return nil, fmt.Errorf("%w: its layer has %d bytes, and only %d are read", ErrNotReport, size, report.MostBytes)
	}
	return layer.Data, nil
}

// Push stores a report in a place, instead of what is there, and returns its digest. If
// that is the known digest, nothing is requested. Its errors are those of Pull.
func (r *Reports) Push(ctx context.Context, place Place, envelope []byte, known string) (string, error) {
	if len(envelope) > report.MostBytes {
		return "", fmt.Errorf("store the report %s: %w: it has %d bytes, and others read only %d", place, ErrInvalid, len(envelope), report.MostBytes)
	}
	artifact, digest, err := artifactOf(envelope)
	if err != nil || digest == known {
		return digest, err
	}
	err = r.ask(ctx, place, transport.PushScope, func(ctx context.Context, tag name.Tag, options []remote.Option) error {
		return r.store(ctx, tag, artifact, envelope, options)
	})
	if err != nil {
		return "", fmt.Errorf("store the report %s: %w", place, err)
	}
	return digest, nil
}

// store stores the layers before the manifest that names them. It does not ask for the
// manifest that is there: that is replaced in any case. The config is the same for all
// reports of a repository. If the registry does not accept the manifest, the next attempt
// stores the config again, which may have been removed.
func (r *Reports) store(ctx context.Context, tag name.Tag, artifact artifact, envelope []byte, options []remote.Option) error {
	pusher, err := remote.NewPusher(options...)
	if err != nil {
		return err
	}
	config, layer := static.NewLayer([]byte(emptyConfig), reportConfig), static.NewLayer(envelope, reportLayer)
	if !r.configs.has(tag.Repository) {
		err = pusher.Upload(ctx, tag.Repository, config)
	}
	if err == nil {
		err = pusher.Upload(ctx, tag.Repository, layer)
	}
	if err == nil {
		err = pusher.Put(ctx, tag, artifact)
	}
	r.configs.set(tag.Repository, err == nil)
	return err
}

// artifact is the manifest of a report.
type artifact []byte

// RawManifest returns the manifest.
func (a artifact) RawManifest() ([]byte, error) { return a, nil }

// MediaType returns the type of the manifest.
func (a artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// artifactOf returns the manifest of a report, and its digest.
func artifactOf(envelope []byte) (artifact, string, error) {
	config, err := descriptor([]byte(emptyConfig), reportConfig)
	if err != nil {
		return nil, "", err
	}
	layer, err := descriptor(envelope, reportLayer)
	if err != nil {
		return nil, "", err
	}
	layer.Data = envelope
	text, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: config, Layers: []v1.Descriptor{layer},
	})
	if err != nil {
		return nil, "", fmt.Errorf("encode the manifest of the report: %w", err)
	}
	itself, err := descriptor(text, types.OCIManifestSchema1)
	return text, itself.Digest.String(), err
}

func descriptor(content []byte, mediaType types.MediaType) (v1.Descriptor, error) {
	digest, size, err := v1.SHA256(bytes.NewReader(content))
	if err != nil {
		return v1.Descriptor{}, fmt.Errorf("compute a digest: %w", err)
	}
	return v1.Descriptor{MediaType: mediaType, Digest: digest, Size: size}, nil
}
