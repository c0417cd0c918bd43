// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"fmt"
	"slices"
	"strings"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/imagepolicy"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/registry/imageinfo"
)

// images asks a store what registries say. It never waits: the store reads in the
// background, and then the Rollout is reconciled again. Without a store, nothing is known.
type images struct{ store *imageinfo.Store }

// Policy uses all tags of the registry if Flux shows only some of them. Flux shows the
// ten that are highest as strings, so of 1.9.0 and 1.10.0 it leaves out the newer one
// first. The tags are listed once for each scan that found other tags than the one
// before. Until then, the tags of the previous listing are used as well.
func (i images) Policy(rollout types.NamespacedName, offer imagepolicy.Offer) releases.Policy {
	policy := offer.Policy
	var scan imageinfo.Scan
	var access string
	if offer.Repository != nil && !offer.Complete {
		scan, access = scanOf(offer.Repository), accessOf(offer.Repository)
	}
	var listing imageinfo.Listing
	if i.store != nil {
		listing = i.store.Tags(rollout, access, scan)
	}
	if listing.Complete {
		policy.Scanned, policy.Complete = listing.Tags, true
		return policy
	}
	policy.Scanned = slices.Concat(listing.Tags, policy.Scanned)
	switch {
	case scan.Count <= len(scan.Shown): // all tags are shown, or nothing was scanned
	case i.store == nil:
		policy.Partial = fmt.Sprintf("Flux shows %d of %d tags; the others are unknown because the feature gate ReleaseMetadata is off",
			len(scan.Shown), scan.Count)
	case listing.Cut:
		policy.Partial = fmt.Sprintf("there are too many: exclude those that are not releases with spec.exclusionList of ImageRepository %s",
			client.ObjectKeyFromObject(offer.Repository))
	default:
		policy.Partial = "they are being listed"
	}
	return policy
}

// scanOf returns the last scan of an ImageRepository; the zero Scan if there was none.
func scanOf(repository *imagev1.ImageRepository) imageinfo.Scan {
	result := repository.Status.LastScanResult
	if result == nil {
		return imageinfo.Scan{}
	}
	return imageinfo.Scan{
		Repository: client.ObjectKeyFromObject(repository),
		Revision:   repository.Spec.Image + " " + scanRevision(repository),
		Count:      result.TagCount,
		Shown:      result.LatestTags,
	}
}

// Metadata uses the known metadata of releases for which the status has none, and
// requests the rest.
func (i images) Metadata(in promotion.Input, offer imagepolicy.Offer) []releases.Metadata {
	if i.store == nil {
		return nil
	}
	var missing []registry.Image
	var access string
	if repository := offer.Repository; repository != nil {
		missing = imagesOf(repository, promotion.MissingMetadata(in))
		access = accessOf(repository)
	}
	return i.store.Ask(client.ObjectKeyFromObject(in.Rollout), access, missing)
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

// forget drops all requests of a Rollout.
func (i images) forget(rollout types.NamespacedName) {
	if i.store != nil {
		i.store.Forget(rollout)
	}
}
