// SPDX-License-Identifier: Apache-2.0

package act

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/imagename"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// release returns the release that is meant.
func (q *quarantining) release(v program.View) (quarantine.Release, error) {
	tag, err := q.meant(v)
	if err != nil {
		return quarantine.Release{}, err
	}
	standing := promotion.StandingOf(v.Input, v.Decision, tag)
	at := slices.IndexFunc(v.Decision.Ledger, func(r v1alpha1.VersionInfo) bool { return r.Tag == tag })
	if at < 0 && standing.Entry == nil {
		return quarantine.Release{}, unknownRelease(v, tag, standing)
	}
	release := quarantine.Release{Image: v.Policy.Image, Tag: tag}
	if at >= 0 && v.Decision.Ledger[at].Digest != nil {
		release.Digest = *v.Decision.Ledger[at].Digest
	} else if standing.Entry != nil && standing.Entry.Version.Digest != nil {
		release.Digest = *standing.Entry.Version.Digest
	}
	if release.Digest == "" && release.Image == "" {
		return release, fmt.Errorf("neither the digest of %s is known nor its image: correct ImagePolicy %s first", tag, v.Policy.Name)
	}
	return release, nil
}

// meant returns the version that was named, or else the current release; after an automatic
// rollback, the one that was rolled back. After one by a user, it may be either.
func (q *quarantining) meant(v program.View) (string, error) {
	current := v.Rollout.Current()
	switch {
	case q.tag != "":
		return q.tag, nil
	case current == nil:
		return "", program.Refuse("nothing is deployed yet: say which release")
	case current.Rollback != nil && current.Rollback.From != "":
		return current.Rollback.From, nil
	}
	if _, left := promotionsOf(v).Earlier(); left != nil {
		line := func(tag, is string) string {
			return q.CommandLine(v.Rollout.Namespace, "quarantine", v.Rollout.Name, tag, "-m", "") + "   # " + is
		}
		return "", program.Refuse("%s runs because %s was rolled back: say which of them\n%s\n%s", current.Version.Tag, left.Version.Tag,
			line(left.Version.Tag, string(left.State())+idOf(left)), line(current.Version.Tag, "it runs"+idOf(current)))
	}
	return current.Version.Tag, nil
}

// unknownRelease says which releases there are, newest first.
func unknownRelease(v program.View, tag string, standing promotion.Standing) error {
	var known []string
	for _, candidate := range v.Decision.Candidates {
		known = append(known, candidate.Release.Tag)
	}
	for i := range v.Rollout.Status.History {
		if old := v.Rollout.Status.History[i].Version.Tag; !slices.Contains(known, old) {
			known = append(known, old)
		}
	}
	if len(known) == 0 || !releases.IsTag(tag) {
		return errors.New(standing.Message)
	}
	return fmt.Errorf("%s; there are %s", standing.Message, truncate.List(known))
}

// choose returns the quarantine of the release as it was read, and as it holds the release.
// from is nil if there is none yet. One of the controller ends by itself: without --until,
// another one holds the release until a user lifts it.
func (q *quarantining) choose(v program.View, release quarantine.Release) (from, to *v1alpha1.ReleaseQuarantine, err error) {
	for _, name := range quarantineNames(v.Rollout.Name, release) {
		at := slices.IndexFunc(v.NamespaceQuarantines, func(known v1alpha1.ReleaseQuarantine) bool { return known.Name == name })
		if at < 0 {
			return nil, q.fresh(v, name, release), nil
		}
		from := &v.NamespaceQuarantines[at]
		if quarantine.IsManaged(from) && q.ends == nil {
			continue
		}
		if to := q.again(from, v.Now); isOf(to.Spec, release) && holdsAt(to, v.Now) {
			return from, to, nil
		}
	}
	return nil, nil, fmt.Errorf("ReleaseQuarantine %s cannot hold %s: delete it, and try again", nameByTag(v.Rollout.Name, release.Tag), release.Tag)
}

// isOf reports whether a quarantine is about a release, however its image is written.
func isOf(spec v1alpha1.ReleaseQuarantineSpec, release quarantine.Release) bool {
	spec.Image = imagename.Canonical(spec.Image)
	return quarantine.Matches(&spec, release)
}

// fresh returns a new quarantine of a release.
func (q *quarantining) fresh(v program.View, name string, release quarantine.Release) *v1alpha1.ReleaseQuarantine {
	made := &v1alpha1.ReleaseQuarantine{ObjectMeta: metav1.ObjectMeta{
		Namespace: v.Rollout.Namespace, Name: name, Labels: map[string]string{},
	}}
	made.Spec = v1alpha1.ReleaseQuarantineSpec{Digest: release.Digest, Reason: q.why, Until: q.ends}
	if release.Image != "" {
		made.Spec.Image, made.Spec.Tags = release.Image, []string{release.Tag}
	}
	if own, ok := quarantine.Name(release.Digest); ok {
		made.Labels = quarantine.Labels(own)
	}
	made.Labels[v1alpha1.ManagedByLabel] = program.FieldManager
	if q.always {
		made.Spec.Enforce = v1alpha1.EnforceAlways
	}
	return made
}

// again returns a quarantine as it holds its release again, with what the flags ask for.
func (q *quarantining) again(from *v1alpha1.ReleaseQuarantine, now time.Time) *v1alpha1.ReleaseQuarantine {
	to, held := from.DeepCopy(), holdsAt(from, now)
	to.Spec.Lifted = false
	if q.always {
		to.Spec.Enforce = v1alpha1.EnforceAlways
	}
	if q.ends != nil || !held {
		to.Spec.Until = q.ends
	}
	to.Spec.Reason = q.why
	return to
}

func holdsAt(q *v1alpha1.ReleaseQuarantine, now time.Time) bool {
	return quarantine.Phase(&q.Spec, &q.Status, now) == v1alpha1.QuarantineHeld
}

// quarantineNames returns the names that a quarantine of a release may have: the one that
// the controller gives it, by its digest, and one by the names of the Rollout and the tag.
func quarantineNames(rollout string, release quarantine.Release) []string {
	byTag := nameByTag(rollout, release.Tag)
	if name, ok := quarantine.Name(release.Digest); ok {
		return []string{name, byTag}
	}
	return []string{byTag}
}

const (
	// longestName is how many characters of a name are of the Rollout and the tag. The API
	// server accepts a few more.
	longestName = 200
	// hashed is how many characters tell names apart whose texts were changed.
	hashed = 8
)

// Characters that a name cannot have, and those that it cannot have next to a dot.
var (
	noName  = regexp.MustCompile(`[^a-z0-9.-]`)
	nextDot = regexp.MustCompile(`[.-]*\.[.-]*`)
)

// nameByTag returns a name made of those of a Rollout and a tag. If a part of the tag
// cannot be in a name, a hash of it is.
func nameByTag(rollout, tag string) string {
	text := rollout + "-" + tag
	name := noName.ReplaceAllString(strings.ToLower(text), "-")
	name = strings.TrimRight(nextDot.ReplaceAllString(name, "."), ".-")
	if name == text && len(name) <= longestName {
		return name
	}
	sum := sha256.Sum256([]byte(text))
	return strings.TrimRight(name[:min(len(name), longestName)], ".-") + "-" + hex.EncodeToString(sum[:])[:hashed]
}
