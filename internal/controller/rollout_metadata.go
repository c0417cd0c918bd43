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

// gatherMetadata uses the known metadata of releases for which the status has none, and
// requests the rest. It never waits: the Rollout is reconciled again when there are
// answers.
func (r *RolloutReconciler) gatherMetadata(w *snapshot, offer imagepolicy.Offer) {
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

// accessOf returns a value that changes when the problem with a registry may be fixed.
func accessOf(repository *imagev1.ImageRepository) string {
	return fmt.Sprintf("generation %d, ready %t", repository.Generation, readyMessage(repository) == "")
}

// imagesOf returns the images of releases, as copies. They are requested and remembered
// for longer than the objects that they come from stay in a cache.
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
