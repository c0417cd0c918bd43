// SPDX-License-Identifier: Apache-2.0

package report

import (
	"regexp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Whoever can write to the place of a report decides what is read, and the keys of others
// are only trusted with what they say, not with the memory of this process.
const (
	// MostBytes is how many bytes an envelope may have.
	MostBytes = 64 << 10
	// mostOfPayload is how many bytes a report of this size may have in its envelope,
	// where four bytes stand for three. The rest is for the signature.
	mostOfPayload = 47 << 10
	// mostSignatures is how many signatures of an envelope are verified, each with each
	// key.
	mostSignatures = 8
	// mostUpstreams is how many upstreams an Environment may have.
	mostUpstreams = 16
	// longestText is the number of characters to which texts are cut that are not names.
	longestText = 256
	// longestPause is the longest pause between two confirmations of a release.
	longestPause = 24 * time.Hour
	// longestSoak is more than any soakTime.
	longestSoak = 10 * 365 * 24 * time.Hour
)

var (
	states = []v1alpha1.BakeStatus{
		v1alpha1.BakeDeploying, v1alpha1.BakeInProgress, v1alpha1.BakeSucceeded, v1alpha1.BakeFailed, v1alpha1.BakeCancelled,
	}
	evidences = []environmentsv1.Evidence{
		"", environmentsv1.EvidenceNone, environmentsv1.EvidenceApplied, environmentsv1.EvidenceHealthy, environmentsv1.EvidenceBaked,
	}
	relationships = []environmentsv1.RelationshipType{environmentsv1.After, environmentsv1.Parallel}
	digest        = regexp.MustCompile(`^(sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$`)
)

// check returns why a report must not be used; nil if it may. Values that this version
// does not know could mean anything, and nothing is promoted because of them.
func check(r Report) error {
	if most := environment.MostReleases; len(r.Releases) > most {
		return refuse(Unreadable, "it has %d releases, and only %d are read", len(r.Releases), most)
	}
	if len(r.Upstreams) > mostUpstreams {
		return refuse(Unreadable, "it has %d upstreams, and only %d are read", len(r.Upstreams), mostUpstreams)
	}
	for _, u := range r.Upstreams {
		if !slices.Contains(relationships, u.Type) {
			return refuse(NewerFormat, "it has an upstream of type %s, which is unknown here: upgrade this controller", quoted(string(u.Type)))
		}
	}
	seen := map[string]bool{}
	for i := range r.Releases {
		if err := checkRelease(&r.Releases[i], i, seen); err != nil {
			return err
		}
	}
	return nil
}

// Publishable divides releases into those that a report can contain, and those because of which
// readers would refuse all of it: another client may have written a state or a tag that none
// of them knows. What is left out holds there anyway.
func Publishable(releases []environmentsv1.Release) (publishable []environmentsv1.Release, unpublishable []error) {
	seen := map[string]bool{}
	for i := range releases {
		if err := checkRelease(&releases[i], len(publishable), seen); err != nil {
			unpublishable = append(unpublishable, err)
			continue
		}
		publishable = append(publishable, releases[i])
	}
	return publishable, unpublishable
}

// checkRelease checks one release. Seen are the digests of those before it: the first of
// two would hide the second.
func checkRelease(r *environmentsv1.Release, place int, seen map[string]bool) error {
	switch {
	case !releases.IsTag(r.Tag):
		return refuse(Unreadable, "%s cannot be a tag", quoted(r.Tag))
	case r.Digest != "" && !digest.MatchString(r.Digest):
		return refuse(Unreadable, "%s, the digest of %s, cannot be a digest", quoted(r.Digest), r.Tag)
	case seen[r.Digest]:
		return refuse(Unreadable, "it has two releases with the digest %s", r.Digest)
	case r.Current && place > 0:
		return refuse(Unreadable, "%s is current, and not the first release", r.Tag)
	case !slices.Contains(states, r.State):
		return refuse(NewerFormat, "%s is in state %s, which is unknown here: upgrade this controller", r.Tag, quoted(string(r.State)))
	case !slices.Contains(evidences, r.Evidence):
		return refuse(NewerFormat, "%s succeeded with evidence %s, which is unknown here: upgrade this controller", r.Tag, quoted(string(r.Evidence)))
	}
	seen[r.Digest] = r.Digest != ""
	return nil
}

// fit makes the texts and times of a report small enough to be stored.
func fit(r *Report) {
	r.ClusterUID = truncate.Text(r.ClusterUID, truncate.LongestName)
	r.Created = metav1.Time{Time: valueOr(storable(&r.Created))}
	for i := range r.Upstreams {
		r.Upstreams[i].Environment = truncate.Text(r.Upstreams[i].Environment, truncate.LongestName)
	}
	r.Releases = fitted(r.Releases)
}

func fitted(releases []environmentsv1.Release) []environmentsv1.Release {
	releases = slices.Clone(releases)
	for i := range releases {
		r := &releases[i]
		for _, text := range []*string{&r.Revision, &r.Message, &r.Unhealthy, &r.Withdrawn} {
			*text = truncate.Text(*text, longestText)
		}
		r.Since, r.Until = storable(r.Since), storable(r.Until)
		r.Soaked, r.LongestSoak = atMost(longestSoak, r.Soaked), atMost(longestSoak, r.LongestSoak)
		r.RenewAfter = atMost(longestPause, r.RenewAfter)
	}
	return releases
}

// atMost returns a duration that is neither negative nor longer than a limit.
func atMost(limit time.Duration, d *metav1.Duration) *metav1.Duration {
	if d == nil {
		return nil
	}
	return &metav1.Duration{Duration: max(0, min(limit, d.Duration))}
}

// storable returns a time, if the API server will store it. A time that it refuses would
// prevent the write of a whole status.
func storable(t *metav1.Time) *metav1.Time {
	if t == nil || t.UTC().Year() < 1970 || t.UTC().Year() > 9999 {
		return nil
	}
	return t
}

func valueOr(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
