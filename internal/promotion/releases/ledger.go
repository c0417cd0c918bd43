// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Grow returns the known releases after it has added what the policy offers and what the
// registry reports. They are in the policy's order, oldest first. If there are more than
// before, they are trimmed. After a move to another image, the list begins anew.
func Grow(rollout *v1alpha1.Rollout, policy Policy, registry Registry, now time.Time) ([]v1alpha1.VersionInfo, []verdict.Note) {
	before := rollout.Status.AvailableReleases
	if policy.Latest == nil || policy.Blocking {
		return registry.allCompleted(before), nil
	}
	if BeforeMove(rollout.Status.History, policy) != nil {
		before = nil // they are of the other image
	}
	ledger, note := addLatest(append(unseen(before, policy), before...), *policy.Latest)
	if policy.ByDigest || runs(rollout, *policy.Latest) {
		note = nil // it is a release as any other; or it was reported when Flux pulled it
	}
	ledger = sorted(registry.allCompleted(ledger), policy.Order)
	if len(ledger) > len(before) {
		ledger = trim(ledger, rollout, now)
	}
	return ledger, note
}

// runs reports whether the release is the current one, with the same content.
func runs(rollout *v1alpha1.Rollout, release v1alpha1.VersionInfo) bool {
	current := rollout.Current()
	return current != nil && current.Version.Tag == release.Tag && Equal(current.Version.Digest, release.Digest)
}

// unseen returns the scanned releases that are not known yet. They come before the known
// ones, and stay before those from which nothing tells them apart. Otherwise a release
// that was trimmed, and that a scan shows again, would push another one out.
func unseen(before []v1alpha1.VersionInfo, policy Policy) []v1alpha1.VersionInfo {
	seen := TagsOf(before)
	var ledger []v1alpha1.VersionInfo
	for _, tag := range scannedUpToLatest(policy) {
		if !seen[tag] {
			seen[tag] = true
			ledger = append(ledger, v1alpha1.VersionInfo{Tag: tag})
		}
	}
	return ledger
}

// TagsOf returns the tags of the releases as a set.
func TagsOf(releases []v1alpha1.VersionInfo) map[string]bool {
	tags := make(map[string]bool, len(releases))
	for i := range releases {
		tags[releases[i].Tag] = true
	}
	return tags
}

// scannedUpToLatest returns the scanned tags that the policy admits and that are not newer
// than the tag it names. A scan may show a release before the policy offers it, and still
// shows a release that the policy skipped. Of tags that are equal for it, the policy names
// only one.
func scannedUpToLatest(p Policy) []string {
	if p.Order.Kind() != BySemver {
		return nil
	}
	var tags []string
	latest := p.Order.place(p.Latest.Tag)
	for _, tag := range p.Scanned {
		order, ok := p.Order.place(tag).precedence(latest)
		if ok && order <= 0 && tag != p.Latest.Tag && IsTag(tag) && p.Order.Admits(tag) {
			tags = append(tags, tag)
		}
	}
	return tags
}

// addLatest appends the release that the policy names. If its tag now points to other
// content, all earlier facts about the tag are dropped.
func addLatest(ledger []v1alpha1.VersionInfo, latest v1alpha1.VersionInfo) ([]v1alpha1.VersionInfo, []verdict.Note) {
	i := Index(ledger, latest.Tag)
	switch {
	case i < 0:
		return append(ledger, latest), nil
	case latest.Digest == nil || Equal(ledger[i].Digest, latest.Digest):
		return ledger, nil
	case ledger[i].Digest == nil:
		ledger[i].Digest, ledger[i].ForwardOnly = latest.Digest, nil // the mark may be about other content
		return ledger, nil
	}
	note := verdict.Note{
		Reason:  v1alpha1.TagMovedReason,
		Message: fmt.Sprintf("tag %s was pushed again: it moved from %s to %s", latest.Tag, *ledger[i].Digest, *latest.Digest),
	}
	ledger[i] = latest
	return ledger, []verdict.Note{note}
}

// sorted sorts the known releases by the policy's order, oldest first. Releases that the
// policy cannot rank count as the oldest, in their order of appearance.
func sorted(ledger []v1alpha1.VersionInfo, order Order) []v1alpha1.VersionInfo {
	if order.Kind() == ByAppearance {
		return ledger
	}
	all := make([]Placed, len(ledger))
	for i, v := range ledger {
		all[i] = order.Placed(v)
	}
	slices.SortStableFunc(all, Placed.inList)
	for i := range all {
		ledger[i] = all[i].VersionInfo
	}
	return ledger
}

// trim keeps the longest of three tails of the known releases: the tail from the oldest
// release in the history, the tail from the oldest release within the retention time, and
// the newest releases that always stay.
func trim(ledger []v1alpha1.VersionInfo, rollout *v1alpha1.Rollout, now time.Time) []v1alpha1.VersionInfo {
	start := max(0, len(ledger)-rollout.Spec.GetAvailableReleasesMinCount())
	for _, entry := range rollout.Status.History {
		if i := Index(ledger, entry.Version.Tag); i >= 0 {
			start = min(start, i)
		}
	}
	return ledger[min(start, startOfRetention(ledger, now, rollout.Spec.GetAvailableReleasesRetentionDays())):]
}

// startOfRetention returns the index after the newest release that is older than the
// retention time. If there is no such release, it returns the index of the oldest release
// known to be within the retention time. Releases of unknown age count as recent unless
// they are the oldest, because a scan shows those again and again.
func startOfRetention(ledger []v1alpha1.VersionInfo, now time.Time, days int) int {
	limit := now.Add(-time.Duration(days) * 24 * time.Hour)
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

// Index returns the position of a tag in the known releases; -1 if it is missing.
func Index(ledger []v1alpha1.VersionInfo, tag string) int {
	return slices.IndexFunc(ledger, func(v v1alpha1.VersionInfo) bool { return v.Tag == tag })
}

// Contains reports whether the known releases have the tag.
func Contains(ledger []v1alpha1.VersionInfo, tag string) bool { return Index(ledger, tag) >= 0 }

// Known returns the known release with a tag. If there is none, it returns only the tag.
func Known(ledger []v1alpha1.VersionInfo, tag string) v1alpha1.VersionInfo {
	if i := Index(ledger, tag); i >= 0 {
		return ledger[i]
	}
	return v1alpha1.VersionInfo{Tag: tag}
}

// Equal reports whether both texts are absent, or are the same.
func Equal(a, b *string) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// versionsLimit is the size limit in the status for the versions that one gate allows, in
// bytes of JSON.
const versionsLimit = 2 << 10

// ListedVersions returns as many of the allowed versions as the size limit permits.
// Wanted versions (the candidates) take precedence. The versions keep their order.
func ListedVersions(allowed []string, wanted map[string]bool) []string {
	listed, left := make([]bool, len(allowed)), versionsLimit
	for _, first := range []bool{true, false} {
		for i, version := range allowed {
			size := truncate.Size(version) + len(`"",`)
			if wanted[version] == first && size <= left {
				listed[i] = true
				left -= size
			}
		}
	}
	some := make([]string, 0, len(allowed))
	for i, version := range allowed {
		if listed[i] {
			some = append(some, version)
		}
	}
	return some
}
