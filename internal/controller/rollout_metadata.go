// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/imagepolicy"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
)

// gatherMetadata takes what is known of the releases whose metadata the status
// lacks, and has the rest fetched. It never waits: the Rollout is reconciled
// again when there are answers.
func (r *RolloutReconciler) gatherMetadata(w *world, offer imagepolicy.Offer) {
	if r.Metadata == nil {
		return
	}
	var images []registry.Image
	var access string
	if repository := offer.Repository; repository != nil {
		images = imagesOf(repository, promotion.MissingMetadata(w.Input))
		access = accessOf(repository)
	}
	w.Metadata = r.Metadata.Ask(client.ObjectKeyFromObject(w.Rollout), access, images)
}

// accessOf is another one if what kept a registry from answering may be mended.
func accessOf(repository *imagev1.ImageRepository) string {
	return fmt.Sprintf("generation %d, ready %t", repository.Generation, readyMessage(repository) == "")
}

// imagesOf are the images of releases, as copies: they are asked for, and known, for
// longer than the objects that they are parts of stay in a cache.
func imagesOf(repository *imagev1.ImageRepository, releases []v1alpha1.VersionInfo) []registry.Image {
	var images []registry.Image
	for _, release := range releases {
		image := registry.Image{
			Repository: client.ObjectKeyFromObject(repository), Name: strings.Clone(repository.Spec.Image), Tag: strings.Clone(release.Tag),
		}
		if release.Digest != nil {
			image.Digest = strings.Clone(*release.Digest)
		}
		images = append(images, image)
	}
	return images
}

func (r *RolloutReconciler) forgetMetadata(rollout types.NamespacedName) {
	if r.Metadata != nil {
		r.Metadata.Forget(rollout)
	}
}
