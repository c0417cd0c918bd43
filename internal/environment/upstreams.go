// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Upstreams returns what is recorded of the upstreams: what each says, when that was first
// read, and why it cannot be read. While an upstream cannot be read, what it said before
// stays.
func Upstreams(before, read []environmentsv1.UpstreamStatus, now time.Time) []environmentsv1.UpstreamStatus {
	known := map[string]environmentsv1.UpstreamStatus{}
	for _, u := range before {
		known[u.Environment] = u
	}
	var all []environmentsv1.UpstreamStatus
	for _, u := range read {
		was := known[u.Environment]
		u.VerifiedTime = &metav1.Time{Time: wholeSecond(now)}
		switch u.ObservedDigest {
		case "":
			u.ObservedDigest, u.VerifiedTime = was.ObservedDigest, was.VerifiedTime
			u.Source, u.Sequence, u.Keys, u.Releases = was.Source, was.Sequence, was.Keys, was.Releases
		case was.ObservedDigest:
			if was.VerifiedTime.Before(u.VerifiedTime) { // otherwise the clock was ahead then
				u.VerifiedTime = was.VerifiedTime
			}
		}
		all = append(all, u)
	}
	return all
}

// Observed identifies what was read of an upstream. Two reports that say the same are not
// the same: each measures up to the time when it was made, and an interruption between
// them may not show. The number is 0 for an upstream in the same API server.
func Observed(sequence int64, releases []environmentsv1.Release) string {
	if sequence == 0 {
		return Digest(releases)
	}
	return Digest([]any{sequence, releases})
}

// mostKeys is how many keys of an upstream have their highest number in the status: more than
// sign for one cluster while a key is replaced.
const mostKeys = 8

// Highest returns the highest numbers of the reports of an upstream by the keys that have
// signed them, when another one was verified. The keys that signed last come first.
func Highest(known []environmentsv1.KeySequence, signedBy []string, sequence int64) []environmentsv1.KeySequence {
	var all []environmentsv1.KeySequence
	for _, key := range signedBy {
		all = append(all, environmentsv1.KeySequence{Key: key, Sequence: sequence})
	}
	for _, k := range known {
		if at := slices.Index(signedBy, k.Key); at >= 0 {
			all[at].Sequence = max(all[at].Sequence, k.Sequence)
			continue
		}
		all = append(all, k)
	}
	return all[:min(len(all), mostKeys)]
}

// RecordOf returns what the status of an Environment has of an upstream. What was verified
// of another one by the same name, before the spec was changed, does not count.
func RecordOf(e *environmentsv1.Environment, u environmentsv1.Upstream) environmentsv1.UpstreamStatus {
	for _, known := range e.Status.Upstreams {
		if known.Environment == u.Environment && known.Source == SourceOf(e, u) {
			return known
		}
	}
	return environmentsv1.UpstreamStatus{}
}

// SourceOf returns whose report says what an upstream has proven; empty if the upstream is
// in the same API server.
func SourceOf(e *environmentsv1.Environment, u environmentsv1.Upstream) string {
	if !u.IsRemote() {
		return ""
	}
	return strings.Join([]string{e.Spec.Name, u.Cluster, u.Namespace, u.Rollout}, "/")
}

const (
	// remoteLimit is the size of all that a status says of upstreams in other clusters, in
	// bytes of JSON. A sixteenth of it has room for one release, however large.
	remoteLimit = 20 << 10
	// shortText is the number of characters to which texts are cut where room is short.
	shortText = 64
)

// Share returns how many bytes of JSON the status of an Environment has for the report of each
// upstream in another cluster. All of them have the same, so what one says never takes the
// place of another one.
func Share(e *environmentsv1.Environment) int {
	remote := 0
	for _, u := range e.GetUpstreams() {
		if u.IsRemote() {
			remote++
		}
	}
	return remoteLimit / max(1, remote)
}

// Kept returns what the status of an Environment has room for, of the releases in the
// report of an upstream.
func Kept(e *environmentsv1.Environment, releases []environmentsv1.Release) []environmentsv1.Release {
	return Fit(releases, Share(e))
}

// Fit returns the releases of a report that fit a limit, in bytes of JSON: the most recent ones,
// the current one first. Texts are shortened before releases are left out.
func Fit(releases []environmentsv1.Release, limit int) []environmentsv1.Release {
	all := func(environmentsv1.Release) bool { return true }
	kept, omitted := truncate.Items(releases, limit, all)
	if omitted > 0 {
		kept, _ = truncate.Items(shortened(releases), limit, all)
	}
	return kept
}

// shortened returns releases with short texts. The revision is not a text: releases are recognized
// by it.
func shortened(releases []environmentsv1.Release) []environmentsv1.Release {
	releases = slices.Clone(releases)
	for i := range releases {
		r := &releases[i]
		for _, text := range []*string{&r.Message, &r.Unhealthy, &r.Withdrawn} {
			*text = truncate.Text(*text, shortText)
		}
	}
	return releases
}
