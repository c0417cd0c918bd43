// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
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

// holding are the quarantines that hold something. Of those with the same subject it has
// the one that ends last. There can be thousands of them, and of releases: so each is
// looked at once per decision.
type holding map[subject]*Quarantine

// indexed returns the Input with the quarantines that hold something now.
func (in Input) indexed() Input {
	in.Quarantines.holding = in.holding()
	return in
}

func (in Input) holding() holding {
	if in.Quarantines.holding != nil {
		return in.Quarantines.holding
	}
	h := holding{}
	for i := range in.Quarantines.All {
		q := &in.Quarantines.All[i]
		if q.holds(in.Now) {
			h.add(in, q)
		}
	}
	return h
}

func (h holding) add(in Input, q *Quarantine) {
	by := q.strength()
	if q.Spec.Digest != "" {
		h.keep(subject{digest: q.Spec.Digest, strength: by}, q)
	}
	if q.Spec.Image == "" || q.Spec.Image != in.Policy.Image {
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

func (h holding) keep(s subject, q *Quarantine) { h[s] = lasting(h[s], q) }

// about returns the quarantine with one of the strengths that holds the release and ends
// last; nil if there is none. Matches of package quarantine says when it is about the release.
func (h holding) about(in Input, release v1alpha1.VersionInfo, strengths ...strength) *Quarantine {
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

// lasting returns the quarantine that ends later. Of two that end together it is the first
// one by name. Either may be nil.
func lasting(a, b *Quarantine) *Quarantine {
	switch {
	case a == nil:
		return b
	case b == nil || endsLater(a.until(), b.until()):
		return a
	case endsLater(b.until(), a.until()) || b.Name < a.Name:
		return b
	}
	return a
}

// endsLater reports whether a is later than b; zero means never.
func endsLater(a, b time.Time) bool { return !b.IsZero() && (a.IsZero() || a.After(b)) }
