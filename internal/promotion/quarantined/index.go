// SPDX-License-Identifier: Apache-2.0

package quarantined

import (
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// strength is what a quarantine that holds keeps from going to a release.
type strength uint8

const (
	// ofFailures holds automatic promotions. Rollbacks go on: the release has succeeded.
	ofFailures strength = iota
	// ofUser holds rollbacks, too.
	ofUser
	// recall holds what users choose, too.
	recall
)

// subject is what quarantines may be about: a digest, or a tag of the policy's image.
type subject struct {
	digest, tag string
	// unknown is true for a tag that counts only while the digest of the release is not
	// known: the quarantine has a digest.
	unknown  bool
	strength strength
}

// Holding are the quarantines that hold something. Of those with the same subject it has
// the one that ends last. There can be thousands of them, and of releases: so each is
// looked at once per decision.
type Holding map[subject]*Quarantine

// Indexed returns the quarantines with those that hold something now, of the image that the
// policy ranks.
func (qs Quarantines) Indexed(image string, now time.Time) Quarantines {
	qs.holding = qs.Holding(image, now)
	return qs
}

// Holding returns the quarantines that hold something now.
func (qs Quarantines) Holding(image string, now time.Time) Holding {
	if qs.holding != nil {
		return qs.holding
	}
	h := Holding{}
	for i := range qs.All {
		if q := &qs.All[i]; q.Holds(now) {
			h.add(q, image)
		}
	}
	return h
}

func (h Holding) add(q *Quarantine, image string) {
	by := q.strength()
	if q.Spec.Digest != "" {
		h.keep(subject{digest: q.Spec.Digest, strength: by}, q)
	}
	if q.Spec.Image == "" || q.Spec.Image != image {
		return
	}
	for _, tag := range q.Spec.Tags {
		h.keep(subject{tag: tag, unknown: q.Spec.Digest != "", strength: by}, q)
	}
}

// strength returns how strongly a quarantine holds. One that the controller has created is
// only about failures.
func (q *Quarantine) strength() strength {
	switch {
	case q.isRecall():
		return recall
	case q.Managed:
		return ofFailures
	}
	return ofUser
}

func (h Holding) keep(s subject, q *Quarantine) { h[s] = lasting(h[s], q) }

// about returns the quarantine with one of the strengths that holds the release and ends
// last; nil if there is none. Matches of package quarantine says when it is about the release.
func (h Holding) about(release v1alpha1.VersionInfo, strengths ...strength) *Quarantine {
	if len(h) == 0 {
		return nil
	}
	var last *Quarantine
	for _, by := range strengths {
		last = lasting(last, h[subject{tag: release.Tag, strength: by}])
		if digest := releases.OrEmpty(release.Digest); digest != "" {
			last = lasting(last, h[subject{digest: digest, strength: by}])
		} else {
			last = lasting(last, h[subject{tag: release.Tag, unknown: true, strength: by}])
		}
	}
	return last
}

// Held returns what holds a release that nobody chooses by name. It ends with the last of
// the quarantines, and so it names that one.
func (h Holding) Held(release v1alpha1.VersionInfo) *verdict.Hold {
	return h.about(release, ofFailures, ofUser).hold(release)
}

// Recalled returns what holds a release even for users.
func (h Holding) Recalled(release v1alpha1.VersionInfo) *verdict.Hold {
	return h.about(release, recall).hold(release)
}

// KnownBad returns the quarantine that keeps a rollback from going to the release, and that
// ends last; nil if there is none. A user says that it is bad. Failures elsewhere do not
// count: the release has succeeded here.
func (h Holding) KnownBad(release v1alpha1.VersionInfo) *Quarantine {
	return h.about(release, ofUser, recall)
}

func (q *Quarantine) hold(release v1alpha1.VersionInfo) *verdict.Hold {
	if q == nil {
		return nil
	}
	return &verdict.Hold{Reason: v1alpha1.QuarantinedReason, Message: q.message(release), Until: q.Until()}
}

// lasting returns the quarantine that ends later. Of two that end together it is the first
// one by name. Either may be nil.
func lasting(a, b *Quarantine) *Quarantine {
	switch {
	case a == nil:
		return b
	case b == nil || EndsLater(a.Until(), b.Until()):
		return a
	case EndsLater(b.Until(), a.Until()) || b.Name < a.Name:
		return b
	}
	return a
}

// EndsLater reports whether a is later than b; zero means never.
func EndsLater(a, b time.Time) bool { return !b.IsZero() && (a.IsZero() || a.After(b)) }
