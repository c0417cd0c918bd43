// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

// verdict is what a quarantine that holds says of a release.
type verdict uint8

const (
	suspicion verdict = iota
	confirmation
	// recall holds what users choose, too.
	recall
)

// subject is what quarantines may be about: a digest, or a tag of the policy's image.
type subject struct {
	digest, tag string
	// unknown is true for a tag that counts only while the digest of the release is not
	// known: the quarantine has a digest.
	unknown bool
	verdict verdict
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
		if phase := q.phase(in); quarantine.Holds(phase) && !q.isEmpty() {
			h.add(in, q, phase)
		}
	}
	return h
}

func (h holding) add(in Input, q *Quarantine, phase v1alpha1.QuarantinePhase) {
	says := suspicion
	switch {
	case q.isRecall():
		says = recall
	case phase == v1alpha1.QuarantineConfirmed:
		says = confirmation
	}
	if q.Spec.Digest != "" {
		h.keep(subject{digest: q.Spec.Digest, verdict: says}, q)
	}
	if q.Spec.Image == "" || q.Spec.Image != in.Policy.Image {
		return
	}
	for _, tag := range q.Spec.Tags {
		h.keep(subject{tag: tag, unknown: q.Spec.Digest != "", verdict: says}, q)
	}
}

func (h holding) keep(s subject, q *Quarantine) { h[s] = lasting(h[s], q) }

// about returns the quarantine with one of the verdicts that holds the release and ends
// last; nil if there is none. See [quarantine.Matches] for when it is about the release.
func (h holding) about(in Input, release v1alpha1.VersionInfo, verdicts ...verdict) *Quarantine {
	if len(h) == 0 {
		return nil
	}
	var last *Quarantine
	for _, says := range verdicts {
		last = lasting(last, h[subject{tag: release.Tag, verdict: says}])
		if digest := orEmpty(release.Digest); digest != "" {
			last = lasting(last, h[subject{digest: digest, verdict: says}])
		} else {
			last = lasting(last, h[subject{tag: release.Tag, unknown: true, verdict: says}])
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
