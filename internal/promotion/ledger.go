// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// grow returns the known releases after it has added what the policy offers and what the
// registry reports. They are in the policy's order, oldest first. If there are more than
// before, they are trimmed. After a move to another image, the list begins anew.
func grow(in Input) ([]v1alpha1.VersionInfo, []verdict.Note) {
	before := in.Rollout.Status.AvailableReleases
	if in.Policy.Latest == nil || in.Policy.Blocking {
		return allCompleted(in, before), nil
	}
	if beforeMove(in.Rollout.Status.History, in.Policy) != nil {
		before = nil // they are of the other image
	}
	ledger, note := addLatest(append(unseen(before, in.Policy), before...), *in.Policy.Latest)
	if runs(in.Rollout, *in.Policy.Latest) {
		note = nil // the new push was reported when Flux pulled it
	}
	ledger = sorted(allCompleted(in, ledger), in.Policy.Order)
	if len(ledger) > len(before) {
		ledger = trim(ledger, in)
	}
	return ledger, note
}

// runs reports whether the release is the current one, with the same content.
func runs(rollout *v1alpha1.Rollout, release v1alpha1.VersionInfo) bool {
	current := rollout.Current()
	return current != nil && current.Version.Tag == release.Tag && equal(current.Version.Digest, release.Digest)
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
	i := index(ledger, latest.Tag)
	switch {
	case i < 0:
		return append(ledger, latest), nil
	case latest.Digest == nil || equal(ledger[i].Digest, latest.Digest):
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
	all := make([]placed, len(ledger))
	for i, v := range ledger {
		all[i] = order.placed(v)
	}
	slices.SortStableFunc(all, placed.inList)
	for i := range all {
		ledger[i] = all[i].VersionInfo
	}
	return ledger
}

// trim keeps the longest of three tails of the known releases: the tail from the oldest
// release in the history, the tail from the oldest release within the retention time, and
// the newest releases that always stay.
func trim(ledger []v1alpha1.VersionInfo, in Input) []v1alpha1.VersionInfo {
	start := max(0, len(ledger)-in.Rollout.Spec.GetAvailableReleasesMinCount())
	for _, entry := range in.Rollout.Status.History {
		if i := index(ledger, entry.Version.Tag); i >= 0 {
			start = min(start, i)
		}
	}
	return ledger[min(start, startOfRetention(ledger, in)):]
}

// startOfRetention returns the index after the newest release that is older than the
// retention time. If there is no such release, it returns the index of the oldest release
// known to be within the retention time. Releases of unknown age count as recent unless
// they are the oldest, because a scan shows those again and again.
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

// known returns the known release with a tag. If there is none, it returns only the tag.
func known(ledger []v1alpha1.VersionInfo, tag string) v1alpha1.VersionInfo {
	if i := index(ledger, tag); i >= 0 {
		return ledger[i]
	}
	return v1alpha1.VersionInfo{Tag: tag}
}

func equal(a, b *string) bool {
	return a == b || a != nil && b != nil && *a == *b
}
