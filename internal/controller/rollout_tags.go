// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/flux/imagepolicy"
	"github.com/fluxrollouts/rollout-controller/internal/registry/imageinfo"
)

// gatherTags uses all tags of the registry if Flux shows only some of them. Flux shows
// the ten that are highest as strings, so of 1.9.0 and 1.10.0 it leaves out the newer one
// first. gatherTags never waits: the tags are listed once for each scan that found other
// tags than the one before, and then the Rollout is reconciled again. Until then, the
// tags of the previous listing are used as well.
func (r *RolloutReconciler) gatherTags(w *snapshot, offer imagepolicy.Offer) {
	var scan imageinfo.Scan
	var access string
	if offer.Repository != nil && !offer.Complete {
		scan, access = scanOf(offer.Repository), accessOf(offer.Repository)
	}
	var listing imageinfo.Listing
	if r.Metadata != nil {
		listing = r.Metadata.Tags(client.ObjectKeyFromObject(w.Rollout), access, scan)
	}
	if listing.Complete {
		w.Policy.Scanned, w.Policy.Complete = listing.Tags, true
		return
	}
	w.Policy.Scanned = slices.Concat(listing.Tags, w.Policy.Scanned)
	switch {
	case scan.Count <= len(scan.Shown): // all tags are shown, or nothing was scanned
	case r.Metadata == nil:
		w.Policy.Partial = fmt.Sprintf("Flux shows %d of %d, and they are not listed, for the feature gate ReleaseMetadata is off",
			len(scan.Shown), scan.Count)
	case listing.Cut:
		w.Policy.Partial = fmt.Sprintf("there are too many: have spec.exclusionList of ImageRepository %s leave out those that are no releases",
			client.ObjectKeyFromObject(offer.Repository))
	default:
		w.Policy.Partial = "they are being listed"
	}
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
