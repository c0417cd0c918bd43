// SPDX-License-Identifier: Apache-2.0

// Package registry reads the metadata of images and their tags from OCI registries, with
// the credentials that Flux uses for the same repository. It also stores and reads the
// signed reports of environments.
package registry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/fluxcd/pkg/cache"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

// Image is one image as an ImageRepository reaches it. The ImageRepository is part of the
// request: others may not see what its credentials can read.
type Image struct {
	// Repository is the ImageRepository.
	Repository types.NamespacedName
	// Name is the name of the image without a tag, as in the ImageRepository's
	// spec.image.
	Name string
	// Tag is the tag of the image.
	Tag string
	// Digest is the digest of the image. Empty means the image that the tag points to
	// now.
	Digest string
}

// String returns the reference of the image.
func (i Image) String() string {
	if i.Digest != "" {
		return i.Name + ":" + i.Tag + "@" + i.Digest
	}
	return i.Name + ":" + i.Tag
}

// Errors that a retry does not fix.
var (
	// ErrNotFound means that the registry does not have the image.
	ErrNotFound = errors.New("the registry does not have it")
	// ErrInvalid means that the image cannot be requested: its name, or the login
	// settings of the ImageRepository, must be corrected.
	ErrInvalid = errors.New("cannot be asked for")
)

// timeout limits all requests for one image together, including those for credentials.
const timeout = 15 * time.Second

// Reader reads the metadata of images from registries.
type Reader struct {
	// NoOwnCredentials refuses to log in as the controller itself, with its identity at a
	// cloud provider or with its Docker config. Without this option, anyone who can
	// create an ImageRepository could read what these credentials can read.
	NoOwnCredentials bool

	repositories client.Reader
	secrets      client.Reader
	tokens       *cache.TokenCache
	guard        destination.Guard
	connections  *connections
}

// tokensKept is how many short-lived tokens of cloud providers are stored. There is one
// per registry host.
const tokensKept = 100

// NewReader returns a Reader that reads ImageRepositories through the first reader, which
// may have a cache, and Secrets and ServiceAccounts through the second, which must not. The
// guard checks each address, because tenants choose the registries.
func NewReader(repositories, secrets client.Reader, guard destination.Guard) (*Reader, error) {
	tokens, err := cache.NewTokenCache(tokensKept)
	if err != nil {
		return nil, fmt.Errorf("make a cache for tokens: %w", err)
	}
	return &Reader{
		repositories: repositories, secrets: secrets, tokens: tokens, guard: guard,
		connections: newConnections(guard, http.ProxyFromEnvironment),
	}, nil
}

// Read reads the metadata of an image from the registry. It returns within seconds. The
// error is ErrNotFound or ErrInvalid if a retry of the same request cannot help.
func (r *Reader) Read(ctx context.Context, image Image) (releases.Metadata, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	metadata, err := r.read(ctx, image)
	if err != nil {
		return releases.Metadata{}, fmt.Errorf("read %s: %w", image, classify(err))
	}
	metadata.Tag = image.Tag
	return metadata, nil
}

func (r *Reader) read(ctx context.Context, image Image) (releases.Metadata, error) {
	repository, err := r.get(ctx, image.Repository)
	if err != nil {
		return releases.Metadata{}, err
	}
	ref, err := reference(image, repository.Spec.Insecure)
	if err != nil {
		return releases.Metadata{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	puller, hangUp, err := r.call(ctx, repository, ref.Context())
	if err != nil {
		return releases.Metadata{}, err
	}
	defer hangUp()
	return look(ctx, puller, ref)
}

func (r *Reader) get(ctx context.Context, key types.NamespacedName) (*imagev1.ImageRepository, error) {
	repository := &imagev1.ImageRepository{}
	if err := r.repositories.Get(ctx, key, repository); err != nil {
		return nil, fmt.Errorf("get ImageRepository %s: %w", key, err)
	}
	return repository, nil
}

// call prepares requests to the registry with the settings of the ImageRepository. The
// returned function closes the connections.
func (r *Reader) call(ctx context.Context, repository *imagev1.ImageRepository, image name.Repository) (*remote.Puller, func(), error) {
	access, err := r.access(ctx, repository, image)
	if err != nil {
		return nil, nil, err
	}
	puller, err := remote.NewPuller(access.options(ctx)...)
	if err != nil {
		return nil, nil, fmt.Errorf("prepare the requests: %w", err)
	}
	return puller, func() { r.hangUp(access) }, nil
}

func reference(image Image, insecure bool) (name.Reference, error) {
	repository, err := imageName(image.Name, insecure)
	switch {
	case err != nil:
		return nil, err
	case image.Digest != "":
		return name.NewDigest(repository.Name()+"@"+image.Digest, scheme(insecure)...)
	}
	return name.NewTag(repository.Name()+":"+image.Tag, scheme(insecure)...)
}

func imageName(image string, insecure bool) (name.Repository, error) {
	return name.NewRepository(image, scheme(insecure)...)
}

func scheme(insecure bool) []name.Option {
	if insecure {
		return []name.Option{name.Insecure}
	}
	return nil
}

// classify wraps a definite negative answer of the registry in ErrNotFound.
func classify(err error) error {
	if missing(err) {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return err
}
