// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// grow returns the ledger with what the policy offers and what the registry says
// added, in the policy's order, oldest first, trimmed if it grew.
func grow(in Input) ([]v1alpha1.VersionInfo, []Note) {
	before := in.Rollout.Status.AvailableReleases
	if in.Policy.Latest == nil || in.Policy.Blocking {
		return allCompleted(in, before), nil
	}
	ledger, note := addLatest(append(unseen(in), before...), *in.Policy.Latest)
	if runs(in.Rollout, *in.Policy.Latest) {
		note = nil // that it was pushed again was told when Flux had pulled it
	}
	ledger = allCompleted(in, sorted(ledger, in.Policy.Order))
	if len(ledger) > len(before) {
		ledger = trim(ledger, in)
	}
	return ledger, note
}

// runs reports whether the release is the current one, its content included.
func runs(rollout *v1alpha1.Rollout, release v1alpha1.VersionInfo) bool {
	current := rollout.Current()
	return current != nil && current.Version.Tag == release.Tag && equal(current.Version.Digest, release.Digest)
}

// unseen are the scanned releases that the ledger lacks. They come before what it
// has, and so count as older than their equals there: a release that was trimmed,
// and that a scan shows again, must not drive out another.
func unseen(in Input) []v1alpha1.VersionInfo {
	seen := TagsOf(in.Rollout.Status.AvailableReleases)
	var ledger []v1alpha1.VersionInfo
	for _, tag := range scannedBelowLatest(in.Policy) {
		if !seen[tag] {
			seen[tag] = true
			ledger = append(ledger, v1alpha1.VersionInfo{Tag: tag})
		}
	}
	return ledger
}

// TagsOf returns the tags of some releases, as a set.
func TagsOf(releases []v1alpha1.VersionInfo) map[string]bool {
	tags := make(map[string]bool, len(releases))
	for i := range releases {
		tags[releases[i].Tag] = true
	}
	return tags
}

// scannedBelowLatest are the scanned tags that the policy admits and that are
// not newer than the one it names: a scan may show a release before the policy
// offers it, and still shows one that the policy skipped.
func scannedBelowLatest(p Policy) []string {
	if p.Order.Kind() != BySemver {
		return nil
	}
	var tags []string
	latest := p.Order.place(p.Latest.Tag)
	for _, tag := range p.Scanned {
		order, ok := p.Order.place(tag).compare(latest)
		if ok && order < 0 && IsTag(tag) && p.Order.Admits(tag) {
			tags = append(tags, tag)
		}
	}
	return tags
}

// addLatest puts the named release last, so that it is the newest among equals
// the first time it is seen. Of a tag that now points elsewhere nothing is known
// any more.
func addLatest(ledger []v1alpha1.VersionInfo, latest v1alpha1.VersionInfo) ([]v1alpha1.VersionInfo, []Note) {
	i := index(ledger, latest.Tag)
	switch {
	case i < 0:
		return append(ledger, latest), nil
	case latest.Digest == nil || equal(ledger[i].Digest, latest.Digest):
		return ledger, nil
	case ledger[i].Digest == nil:
		ledger[i].Digest = latest.Digest
		return ledger, nil
	}
	note := Note{
		Reason:  v1alpha1.TagMovedReason,
		Message: fmt.Sprintf("tag %s was pushed again: it moved from %s to %s", latest.Tag, *ledger[i].Digest, *latest.Digest),
	}
	ledger[i] = latest
	return ledger, []Note{note}
}

// sorted orders the ledger by the policy, oldest first. What the policy cannot
// rank counts as oldest, in the order of its appearance.
func sorted(ledger []v1alpha1.VersionInfo, order Order) []v1alpha1.VersionInfo {
	if order.Kind() == ByAppearance {
		return ledger
	}
	type placed struct {
		v1alpha1.VersionInfo
		place
	}
	all := make([]placed, len(ledger))
	for i, v := range ledger {
		all[i] = placed{v, order.place(v.Tag)}
	}
	slices.SortStableFunc(all, func(a, b placed) int {
		if result, ok := a.compare(b.place); ok {
			return result
		}
		return firstIf(b.ranked, a.ranked)
	})
	for i := range all {
		ledger[i] = all[i].VersionInfo
	}
	return ledger
}

// trim keeps the longest of three tails of the ledger: from the oldest release
// that the history names, from the oldest one within the retention time, and
// the newest ones that always stay.
func trim(ledger []v1alpha1.VersionInfo, in Input) []v1alpha1.VersionInfo {
	start := max(0, len(ledger)-in.Rollout.Spec.GetAvailableReleasesMinCount())
	for _, entry := range in.Rollout.Status.History {
		if i := index(ledger, entry.Version.Tag); i >= 0 {
			start = min(start, i)
		}
	}
	return ledger[min(start, startOfRetention(ledger, in)):]
}

// startOfRetention is the index after the newest release that is older than
// the retention time, or else of the oldest one known to be within it. Releases
// of unknown age count as recent unless they are the oldest: a scan shows such
// again and again.
func startOfRetention(ledger []v1alpha1.VersionInfo, in Input) int {
	days := in.Rollout.Spec.GetAvailableReleasesRetentionDays()
	limit := in.Now.Add(-time.Duration(days) * 24 * time.Hour)
	start := len(ledger)
	for i, release := range slices.Backward(ledger) {
		switch {
		case release.Created == nil:
		case release.Created.Time.Before(limit):
			return i + 1
		default:
			start = i
		}
	}
	return start
}

func index(ledger []v1alpha1.VersionInfo, tag string) int {
	return slices.IndexFunc(ledger, func(v v1alpha1.VersionInfo) bool { return v.Tag == tag })
}

func contains(ledger []v1alpha1.VersionInfo, tag string) bool { return index(ledger, tag) >= 0 }

// known returns what the ledger knows of a tag; at least the tag.
func known(ledger []v1alpha1.VersionInfo, tag string) v1alpha1.VersionInfo {
	if i := index(ledger, tag); i >= 0 {
		return ledger[i]
	}
	return v1alpha1.VersionInfo{Tag: tag}
}

func equal(a, b *string) bool {
	return a == b || a != nil && b != nil && *a == *b
}
