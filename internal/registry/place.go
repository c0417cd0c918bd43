// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-containerregistry/pkg/name"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	return r.reader.access(ctx, settings, repository)
}
