// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"math/rand/v2"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/report"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// After a failed attempt, there is another one after these pauses.
const (
	firstRetry = 5 * time.Second
	lastRetry  = 10 * time.Minute
)

// subject is an Environment with a report. Workers copy it: nothing that it points to
// changes.
type subject struct {
	// version is that of the spec.
	version version
	// repository and tag are the place that the spec names.
	repository, tag string
	// wanted is what to store; nil once it is stored, to save memory. digest is that of its
	// content; empty as long as the UID of the cluster is not known.
	wanted *wanted
	digest string
	// recorded is what the status says was stored last, stored is what this process stored
	// last. The latter is the newer one.
	recorded, stored *environmentsv1.ReportStatus
	// seen is the reference that this process has looked at before its first write to it,
	// and sequence is the number of the own report there.
	seen     string
	sequence int64

	// forced is true if somebody has asked for the report to be stored again, although it
	// says the same: it is then signed with the present key.
	forced bool

	// manifest is the digest of the report that this process has stored in the place, or found
	// there; empty if it does not know. compare is when the place is looked at next, and
	// comparing is set from then on until that was done.
	manifest  string
	compare   time.Time
	comparing bool

	problem  *verdict.Problem
	failures int
	retry    time.Time // not before this time
	pace     pace
	// shown is what Publish returned last.
	shown Publication
}

// wanted is what an Environment says now.
type wanted struct {
	// environment has the spec, and of the metadata only what names it.
	environment *environmentsv1.Environment
	// content is its report without the UID of the cluster, a number and a time.
	content report.Report
	// unpublishable are the releases that readers would refuse, as they would say it.
	unpublishable []error
}

// version identifies a spec, even if the object was deleted and created again.
type version struct {
	uid        types.UID
	generation int64
}

// take replaces what the Environment says. Another spec may be the end of the problem, so
// that there is no need to wait; other releases are not.
func (s *subject) take(e *environmentsv1.Environment, content report.Report, unpublishable []error) {
	if now := (version{e.UID, e.Generation}); s.version != now {
		s.version, s.problem, s.failures, s.retry = now, nil, 0, time.Time{}
	}
	s.forced = s.forced || isAsked(e)
	s.repository, s.tag = e.Spec.Backend.Project, report.Tag(e.Namespace, e.Spec.RolloutRef.Name)
	s.recorded = e.Status.Report.DeepCopy()
	s.wanted = &wanted{content: content, unpublishable: unpublishable, environment: &environmentsv1.Environment{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name, Generation: e.Generation}, Spec: *e.Spec.DeepCopy(),
	}}
}

func (s *subject) reference() string { return s.repository + ":" + s.tag }

// published returns what was stored last in the present place; zero if nothing was.
func (s *subject) published() environmentsv1.ReportStatus {
	for _, known := range []*environmentsv1.ReportStatus{s.stored, s.recorded} {
		if known != nil && known.Reference == s.reference() {
			return *known
		}
	}
	return environmentsv1.ReportStatus{}
}

// isAsked reports whether a user has asked for something since the last pass that did it.
func isAsked(e *environmentsv1.Environment) bool {
	token := e.Annotations[meta.ReconcileRequestAnnotation]
	return token != "" && token != e.Status.LastHandledReconcileAt
}

func (s *subject) isStored() bool {
	return !s.forced && !s.comparing && s.digest != "" && s.published().Digest == s.digest
}

// lastSequence returns the highest number that a report of this Environment is known to
// have had, in any place.
func (s *subject) lastSequence() int64 {
	last := s.sequence
	for _, known := range []*environmentsv1.ReportStatus{s.stored, s.recorded} {
		if known != nil {
			last = max(last, known.Sequence)
		}
	}
	return last
}

// due returns when the next attempt may begin.
func (s *subject) due() time.Time {
	if due := s.pace.due(); due.After(s.retry) {
		return due
	}
	return s.retry
}

// publication returns what has become of the report. Just after a start it is not known
// whether the status is up to date, and mostly it is.
func (s *subject) publication() Publication {
	unclear := !s.forced && s.digest == "" && s.published().Reference != ""
	return Publication{
		Pending: s.problem == nil && !s.isStored() && !unclear,
		Stored:  s.stored.DeepCopy(), // it becomes part of an object
		Problem: s.problem,
	}
}

// conclude records how an attempt ended that began with the given state.
func (s *subject) conclude(began *subject, o outcome, now time.Time) {
	if o.requested {
		s.pace.add(now)
	}
	if o.fetched {
		s.seen, s.sequence = began.reference(), o.sequence
	}
	if o.stored != nil {
		s.stored = o.stored
	}
	if o.manifest != "" {
		s.manifest = o.manifest
	}
	switch {
	case o.problem == nil:
		s.concluded(began, o, now)
	case s.version == began.version:
		s.fail(o, now)
		if began.comparing && !o.fetched && o.problem.Reason == environmentsv1.PublishFailedReason {
			s.problem = began.problem // the report is stored, as far as it is known
		}
	}
}

// concluded records that an attempt has ended well.
func (s *subject) concluded(began *subject, o outcome, now time.Time) {
	if o.requested {
		s.compare, s.comparing = now.Add(comparePause()), false
	}
	s.forced = s.forced && !began.forced
	s.problem, s.failures, s.retry = nil, 0, time.Time{}
}

// hasLooked reports whether this process has looked at the place, and need not again.
func (s *subject) hasLooked() bool { return s.seen == s.reference() && (s.forced || !s.comparing) }

// left returns the digest of what this process has left in the place; empty if it does not
// know.
func (s *subject) left() string {
	if s.seen != s.reference() {
		return ""
	}
	return s.manifest
}

// The place is compared with what was stored there at some time soon after the start, and
// about once an hour. The status and the registry may differ: after one of
// them was restored, by a rule that deletes tags, or by a write that came late.
const (
	firstCompare   = 10 * time.Minute
	compareEvery   = time.Hour
	longestCompare = compareEvery + compareEvery/5
)

// comparePause returns an hour, give or take a fifth: Environments that were published
// together are not all compared at once.
func comparePause() time.Duration {
	return compareEvery - compareEvery/5 + rand.N(2*compareEvery/5)
}

// plansComparison sets when the place is compared first in this process.
func (s *subject) plansComparison(now time.Time) {
	if s.compare.IsZero() {
		s.compare = now.Add(rand.N(firstCompare))
	}
}

func (s *subject) fail(o outcome, now time.Time) {
	pause := firstRetry
	for i := 0; i < s.failures && pause < lastRetry; i++ {
		pause *= 2
	}
	s.failures++
	s.retry = now.Add(max(min(pause, lastRetry), o.after))
	same := s.problem != nil && s.problem.Reason == o.problem.Reason && truncate.SameButDurations(s.problem.Message, o.problem.Message)
	if !same {
		s.problem = o.problem
	}
}
