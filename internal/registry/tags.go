// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/internal/pattern"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

// Tags are the tags that a registry has of an image.
type Tags struct {
	// Names are sorted as strings. They do not include tags that the ImageRepository
	// excludes, or invalid tags.
	Names []string
	// Cut is true if there are more tags than the limits allow. A retry does not change
	// that.
	Cut bool
}

// Limits for reading the tags of a registry. The size of each answer is limited too.
const (
	// listTimeout limits all requests for the tags of one image together.
	listTimeout = 30 * time.Second
	// mostPages is how many answers are read. A usual answer has a hundred tags.
	mostPages = 100
	// mostRead is how many tags are read, including the excluded ones.
	mostRead = 100_000
	// mostTags is how many tags are stored: each pass of a Rollout uses all of them.
	mostTags = 5_000
	// mostExclusion is the maximum total length of all patterns of an exclusion list.
	mostExclusion = 4096
)

// List returns the tags that the registry has of the ImageRepository's image, except
// those that its spec.exclusionList excludes. It returns within seconds. Its errors are
// the same as those of Read.
func (r *Reader) List(ctx context.Context, repository types.NamespacedName) (Tags, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	tags, err := r.list(ctx, repository)
	if err != nil {
		return Tags{}, fmt.Errorf("list the tags of ImageRepository %s: %w", repository, classify(err))
	}
	slices.Sort(tags.Names)
	tags.Names = slices.Clip(slices.Compact(tags.Names))
	return tags, nil
}

func (r *Reader) list(ctx context.Context, key types.NamespacedName) (Tags, error) {
	repository, err := r.get(ctx, key)
	if err != nil {
		return Tags{}, err
	}
	image, err := imageName(repository.Spec.Image, repository.Spec.Insecure)
	if err != nil {
		return Tags{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	excluded, err := exclusion(repository)
	if err != nil {
		return Tags{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	puller, hangUp, err := r.call(ctx, repository, image)
	if err != nil {
		return Tags{}, err
	}
	defer hangUp()
	lister, err := puller.Lister(ctx, image) // reads the first page
	if err != nil {
		return orCut(Tags{}, err)
	}
	return readPages(ctx, lister, excluded)
}

// orCut treats an answer that is too large as a cut one, because it will not be smaller
// the next time.
func orCut(tags Tags, err error) (Tags, error) {
	if errors.Is(err, errTooLarge) {
		tags.Cut = true
		return tags, nil
	}
	return Tags{}, err
}

// readPages reads the tags up to the limits.
func readPages(ctx context.Context, lister *remote.Lister, excluded []*regexp.Regexp) (Tags, error) {
	var tags Tags
	for pages, read := 0, 0; lister.HasNext(); pages++ {
		page, err := lister.Next(ctx)
		if err != nil {
			return orCut(tags, err)
		}
		read += len(page.Tags)
		if err := tags.add(ctx, page.Tags, excluded); err != nil {
			return Tags{}, err
		}
		if tags.Cut || lister.HasNext() && (pages+1 == mostPages || read >= mostRead) {
			tags.Cut = true
			return tags, nil
		}
	}
	return tags, nil
}

// add stores the tags that are not excluded, up to the limit. It ends with ctx, because
// users can write patterns that take long for each tag.
func (t *Tags) add(ctx context.Context, tags []string, excluded []*regexp.Regexp) error {
	for _, tag := range tags {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		matches := func(pattern *regexp.Regexp) bool { return pattern.MatchString(tag) }
		if !releases.IsTag(tag) || slices.ContainsFunc(excluded, matches) {
			continue
		}
		if len(t.Names) == mostTags {
			t.Cut = true
			return nil
		}
		t.Names = append(t.Names, tag)
	}
	return nil
}

// exclusion returns the patterns of tags that Flux excludes from a scan.
func exclusion(repository *imagev1.ImageRepository) ([]*regexp.Regexp, error) {
	var patterns []*regexp.Regexp
	size := 0
	for _, text := range repository.GetExclusionList() {
		if size += len(text); size > mostExclusion {
			return nil, fmt.Errorf("spec.exclusionList is longer than %d characters", mostExclusion)
		}
		compiled, err := pattern.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("spec.exclusionList: %w", err)
		}
		patterns = append(patterns, compiled)
	}
	return patterns, nil
}
