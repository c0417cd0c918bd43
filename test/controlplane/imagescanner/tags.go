// SPDX-License-Identifier: Apache-2.0

package imagescanner

import (
	"encoding/json"
	"fmt"
	"hash/adler32"
	"regexp"
	"slices"
	"strconv"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// latestTagsCount is how many tags the status shows.
const latestTagsCount = 10

// without drops the tags that match one of the patterns and returns the rest
// in descending order.
func without(tags, patterns []string) ([]string, error) {
	kept := slices.Clone(tags)
	for _, pattern := range patterns {
		excluded, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("failed to compile regex %s: %w", pattern, err)
		}
		kept = slices.DeleteFunc(kept, excluded.MatchString)
	}
	slices.Sort(kept)
	slices.Reverse(kept)
	return kept, nil
}

// scanResult describes tags that are in descending order.
func scanResult(tags []string, now metav1.Time) (*imagev1.ScanResult, error) {
	revision, err := checksum(tags)
	if err != nil {
		return nil, err
	}
	return &imagev1.ScanResult{
		Revision:   revision,
		TagCount:   len(tags),
		ScanTime:   now,
		LatestTags: slices.Clone(tags[:min(len(tags), latestTagsCount)]),
	}, nil
}

// checksum identifies a set of tags as the original does: by the Adler-32 sum
// of their JSON.
func checksum(tags []string) (string, error) {
	if tags == nil {
		tags = []string{}
	}
	text, err := json.Marshal(tags)
	if err != nil {
		return "", fmt.Errorf("encode tags: %w", err)
	}
	return strconv.FormatUint(uint64(adler32.Checksum(text)), 10), nil
}
