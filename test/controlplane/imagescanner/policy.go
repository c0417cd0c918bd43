// SPDX-License-Identifier: Apache-2.0

package imagescanner

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
)

// invalidPolicyError means that only a change of the policy can help.
type invalidPolicyError struct{ error }

// The messages are part of the status that others read.
var (
	errNoTags    = errors.New("version list argument cannot be empty")
	errNoVersion = errors.New("unable to determine latest version from provided list")
)

// order chooses the latest of some tags, or of what was extracted from them.
type order func(tags []string) (string, error)

// latest is the tag that a policy chooses.
func latest(spec imagev1.ImagePolicySpec, tags []string) (string, error) {
	choose, err := orderOf(spec.Policy)
	if err != nil {
		return "", invalidPolicyError{fmt.Errorf("invalid policy: %w", err)}
	}
	if spec.FilterTags == nil {
		return choose(tags)
	}
	extracted, err := filter(*spec.FilterTags, tags)
	if err != nil {
		return "", invalidPolicyError{fmt.Errorf("failed to filter tags: %w", err)}
	}
	keys := make([]string, 0, len(extracted))
	for key := range extracted {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	chosen, err := choose(keys)
	return extracted[chosen], err
}

func orderOf(choice imagev1.ImagePolicyChoice) (order, error) {
	switch {
	case choice.SemVer != nil:
		return inRange(choice.SemVer.Range)
	case choice.Alphabetical != nil:
		return alphabetical(choice.Alphabetical.Order)
	case choice.Numerical != nil:
		return numerical(choice.Numerical.Order)
	}
	return nil, errors.New("given ImagePolicyChoice object is invalid")
}

// inRange chooses the highest semantic version within a range. A tag may have
// a leading v, but all three numbers are required.
func inRange(versions string) (order, error) {
	constraint, err := semver.NewConstraint(versions)
	if err != nil {
		return nil, err
	}
	return func(tags []string) (string, error) {
		if len(tags) == 0 {
			return "", errNoTags
		}
		var best *semver.Version
		for _, tag := range tags {
			v, err := semver.StrictNewVersion(strings.TrimPrefix(tag, "v"))
			if err == nil && constraint.Check(v) && (best == nil || v.GreaterThan(best)) {
				best, _ = semver.NewVersion(tag)
			}
		}
		if best == nil {
			return "", errNoVersion
		}
		return best.Original(), nil
	}, nil
}

func alphabetical(direction string) (order, error) {
	ascending, err := isAscending(direction)
	return func(tags []string) (string, error) {
		if len(tags) == 0 {
			return "", errNoTags
		}
		if ascending {
			return slices.Max(tags), nil
		}
		return slices.Min(tags), nil
	}, err
}

// numerical fails on the first tag that is no number: a filter has to keep
// those away.
func numerical(direction string) (order, error) {
	ascending, err := isAscending(direction)
	return func(tags []string) (string, error) {
		if len(tags) == 0 {
			return "", errNoTags
		}
		best, bestNumber := "", 0.0
		for i, tag := range tags {
			number, err := strconv.ParseFloat(tag, 64)
			if err != nil {
				return "", fmt.Errorf("failed to parse invalid numeric value '%s'", tag)
			}
			if i == 0 || (ascending && number >= bestNumber) || (!ascending && number <= bestNumber) {
				best, bestNumber = tag, number
			}
		}
		return best, nil
	}, err
}

func isAscending(direction string) (bool, error) {
	switch strings.ToLower(direction) {
	case "", "asc":
		return true, nil
	case "desc":
		return false, nil
	}
	return false, fmt.Errorf("invalid order argument provided: '%s', must be one of: asc, desc", direction)
}

// filter maps what it extracts from each matching tag to that tag.
func filter(f imagev1.TagFilter, tags []string) (map[string]string, error) {
	pattern, err := regexp.Compile(f.Pattern)
	if err != nil {
		return nil, fmt.Errorf("invalid regular expression pattern '%s': %w", f.Pattern, err)
	}
	extracted := map[string]string{}
	for _, tag := range tags {
		match := pattern.FindStringSubmatchIndex(tag)
		if len(match) == 0 {
			continue
		}
		key := tag
		if f.Extract != "" {
			key = string(pattern.ExpandString(nil, f.Extract, tag, match))
		}
		extracted[key] = tag
	}
	return extracted, nil
}
