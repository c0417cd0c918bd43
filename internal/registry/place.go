// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-containerregistry/pkg/name"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/imagepolicy"
)

// Place is where a report is stored, and how it is reached. All objects are in one
// namespace: nobody can use the credentials of another one.
type Place struct {
	// Repository is the name of the repository, with its registry.
	Repository string
	// Tag is the tag of the report.
	Tag string
	// Insecure allows plain HTTP.
	Insecure bool
	// Namespace is that of the Secret and of the ImageRepository.
	Namespace string
	// Secret is the name of the Secret with the login. If it is empty, the login of the
	// ImageRepository is used.
	Secret string
	// ImageRepository is the name of the ImageRepository whose proxy and certificates are
	// used. If it is empty, too, only what the controller itself has can be used.
	ImageRepository string
}

// PlaceOf returns how an Environment reaches a report: its own one, or that of an
// upstream. The login is its spec.backend.secret, or that of the ImageRepository which the
// Rollout's ImagePolicy scans, as long as all of these are in its namespace. The proxy and
// the certificates are always those of the ImageRepository. The reader may be a cache: it
// reads Rollouts and ImagePolicies. If one of them is missing, there is no ImageRepository.
func PlaceOf(ctx context.Context, reader client.Reader, e *environmentsv1.Environment, repository, tag string) (Place, error) {
	images, err := imageRepositoryOf(ctx, reader, client.ObjectKey{Namespace: e.Namespace, Name: e.Spec.RolloutRef.Name})
	if err != nil {
		return Place{}, err
	}
	return Place{
		Repository: repository, Tag: tag, Insecure: e.Spec.Backend.Insecure,
		Namespace: e.Namespace, Secret: e.Spec.Backend.Secret, ImageRepository: images,
	}, nil
}

// imageRepositoryOf returns the name of the ImageRepository that a Rollout's ImagePolicy
// scans; empty if there is none in the namespace of the Rollout.
func imageRepositoryOf(ctx context.Context, reader client.Reader, key client.ObjectKey) (string, error) {
	rollout := &v1alpha1.Rollout{}
	if err := reader.Get(ctx, key, rollout, client.UnsafeDisableDeepCopy); err != nil {
		return "", unlessMissing(fmt.Sprintf("get Rollout %s", key), err)
	}
	key.Name = rollout.Spec.ReleasesImagePolicy.Name
	policy := &imagev1.ImagePolicy{}
	if err := reader.Get(ctx, key, policy, client.UnsafeDisableDeepCopy); err != nil {
		return "", unlessMissing(fmt.Sprintf("get ImagePolicy %s", key), err)
	}
	if images := imagepolicy.RepositoryOf(policy); images.Namespace == key.Namespace {
		return images.Name, nil
	}
	return "", nil
}

func unlessMissing(what string, err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// String returns the reference of the report.
func (p Place) String() string { return p.Repository + ":" + p.Tag }

func (p Place) reference() (name.Tag, error) {
	repository, err := imageName(p.Repository, p.Insecure)
	if err != nil {
		return name.Tag{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	tag, err := name.NewTag(repository.Name()+":"+p.Tag, scheme(p.Insecure)...)
	if err != nil {
		return name.Tag{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return tag, nil
}

// access returns the access to a place, by the same rules as that to an image.
func (r *Reports) access(ctx context.Context, place Place, repository name.Repository) (access, error) {
	settings := &imagev1.ImageRepository{ObjectMeta: metav1.ObjectMeta{Namespace: place.Namespace, Name: place.ImageRepository}}
	if place.ImageRepository != "" {
		stored, err := r.reader.get(ctx, types.NamespacedName{Namespace: place.Namespace, Name: place.ImageRepository})
		if err != nil {
			return access{}, err
		}
		settings = stored.DeepCopy() // it may be a cache's
	}
	if place.Secret != "" {
		settings.Spec.SecretRef = &meta.LocalObjectReference{Name: place.Secret}
		settings.Spec.ServiceAccountName, settings.Spec.Provider = "", ""
	}
	settings.Spec.Insecure = place.Insecure
	return r.reader.access(ctx, settings, repository)
}
