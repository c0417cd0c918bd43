// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/faults/record"
)

// entry is a promotion.
type entry = v1alpha1.DeploymentHistoryEntry

// rollout is the last seen state of a Rollout, and the known facts about its past.
type rollout struct {
	object *v1alpha1.Rollout
	// ever contains all promotions of the past, by id, in their last seen state.
	ever map[int64]entry
	// evidence is about the newest promotion.
	evidence *evidence
}

// seeRollout checks that the history only grows, and that its entries only go forwards.
func (s *Findings) seeRollout(is *v1alpha1.Rollout, sight record.Sight) {
	r := s.rollouts[is.UID]
	if sight.Gone {
		delete(s.rollouts, is.UID)
		return
	}
	if r == nil {
		r = &rollout{object: is, ever: map[int64]entry{}}
		s.rollouts[is.UID] = r
		for i := range is.Status.History {
			r.ever[idOf(&is.Status.History[i])] = is.Status.History[i]
		}
		s.gather(r)
		return
	}
	was := r.object
	r.object = is
	s.checkOrder(is)
	s.checkKept(was, is)
	s.checkNew(r, was, sight.Gap)
	for i := range is.Status.History {
		e := &is.Status.History[i]
		if before, known := r.ever[idOf(e)]; known {
			s.checkStep(r, &before, e, i == 0, sight.Gap)
		}
		r.ever[idOf(e)] = *e
	}
	if begun(was) != begun(is) {
		s.gather(r)
	}
}

// idOf returns the id of a promotion, or -1 if it has none.
func idOf(e *entry) int64 {
	if e == nil || e.ID == nil {
		return -1
	}
	return *e.ID
}

// begun returns a text that identifies the newest promotion and its latest retry.
func begun(r *v1alpha1.Rollout) string {
	e := r.Current()
	if e == nil {
		return ""
	}
	return fmt.Sprint(idOf(e), e.Timestamp, e.LastRetryTimestamp)
}

// checkOrder checks that ids fall from the newest to the oldest, and that all except the
// newest have ended.
func (s *Findings) checkOrder(is *v1alpha1.Rollout) {
	history := is.Status.History
	for i := 1; i < len(history); i++ {
		if idOf(&history[i]) >= idOf(&history[i-1]) {
			s.complain("%s: promotion %d stands before %d", named(is), idOf(&history[i]), idOf(&history[i-1]))
		}
		if history[i].State().Running() {
			s.complain("%s: promotion %d is %s though it is not the newest", named(is), idOf(&history[i]), history[i].State())
		}
	}
}

// checkKept checks that recorded promotions stay in the history, unless the history has
// reached its limit.
func (s *Findings) checkKept(was, is *v1alpha1.Rollout) {
	if len(is.Status.History) >= is.Spec.GetVersionHistoryLimit() {
		return
	}
	for i := range was.Status.History {
		if id := idOf(&was.Status.History[i]); !hasID(is.Status.History, id) {
			s.complain("%s: promotion %d has vanished", named(is), id)
		}
	}
}

func hasID(history []entry, id int64) bool {
	return slices.ContainsFunc(history, func(e entry) bool { return idOf(&e) == id })
}

// checkNew checks that promotions are added one at a time, with a higher id than all
// before. A promotion must not repeat the one before it. If no user chose it, it must be
// newer than that, or a rollback.
func (s *Findings) checkNew(r *rollout, was *v1alpha1.Rollout, gap bool) {
	var added []*entry
	for i := range r.object.Status.History {
		if e := &r.object.Status.History[i]; !hasID(was.Status.History, idOf(e)) {
			added = append(added, e)
		}
	}
	s.Promotions += len(added)
	if len(added) > 1 && !gap {
		s.complain("%s: %d promotions were recorded at once", named(r.object), len(added))
	}
	for _, e := range added {
		s.checkAdded(r, was, e, gap)
	}
}

func (s *Findings) checkAdded(r *rollout, was *v1alpha1.Rollout, e *entry, gap bool) {
	for id, before := range r.ever {
		switch {
		case id >= idOf(e):
			s.complain("%s: promotion %d was recorded after %d", named(r.object), idOf(e), id)
		case id == idOf(e)-1 && repeats(&before, e):
			s.complain("%s: %s was promoted twice in a row, as %d and %d", named(r.object), e.Version.Tag, id, idOf(e))
		}
	}
	if e.IsRollback() {
		s.checkRollback(r, e)
		return
	}
	current := was.Current()
	if !gap && current != nil && cmp.Or(was.Pinned(), was.Annotations[v1alpha1.ForceDeployAnnotation]) != e.Version.Tag && !newer(e.Version.Tag, current.Version.Tag) && !pushedAgain(current, e) {
		s.complain("%s: %s was promoted by itself after %s", named(r.object), e.Version.Tag, current.Version.Tag)
	}
}

// checkRollback checks that a rollback answers the failure of a promotion that was no
// rollback itself, and goes to a release that succeeded before.
func (s *Findings) checkRollback(r *rollout, e *entry) {
	older := slices.DeleteFunc(slices.Clone(r.object.Status.History), func(o entry) bool { return idOf(&o) >= idOf(e) })
	if len(older) == 0 || older[0].State() != v1alpha1.BakeFailed || older[0].IsRollback() {
		s.complain("%s: rollback %d to %s answers no failure", named(r.object), idOf(e), e.Version.Tag)
	}
	if !slices.ContainsFunc(older, func(o entry) bool { return o.Version.Tag == e.Version.Tag && o.State() == v1alpha1.BakeSucceeded }) {
		s.complain("%s: rollback %d is to %s, which has not succeeded before", named(r.object), idOf(e), e.Version.Tag)
	}
}

// repeats reports whether an entry promotes the same content as the one before it.
func repeats(before, e *entry) bool {
	return before.Version.Tag == e.Version.Tag && sameDigest(before, e) && !pushedAgain(before, e)
}

// newer reports whether a version is greater than another. It returns true if one of them
// is not a version.
func newer(tag, than string) bool {
	version, err := semver.NewVersion(tag)
	before, errBefore := semver.NewVersion(than)
	return err != nil || errBefore != nil || version.GreaterThan(before)
}

// pushedAgain reports whether an entry records other content under the tag of the one
// before it, without a decision of a user. While the ImagePolicy cannot be read, the
// entry reports that in its message, without the digest.
func pushedAgain(before, e *entry) bool {
	bySystem := e.TriggeredBy != nil && e.TriggeredBy.Kind == v1alpha1.TriggeredBySystem
	says := e.Version.Digest == nil && e.Message != nil && strings.HasPrefix(*e.Message, "tag "+e.Version.Tag+" was pushed again")
	return bySystem && before.Version.Tag == e.Version.Tag && (says || !sameDigest(before, e))
}

// sameDigest reports whether two entries have the same digest, or one of them has none.
func sameDigest(a, b *entry) bool {
	return a.Version.Digest == nil || b.Version.Digest == nil || *a.Version.Digest == *b.Version.Digest
}

// steps contains the steps that a promotion may take.
var steps = map[v1alpha1.BakeStatus][]v1alpha1.BakeStatus{
	v1alpha1.BakeDeploying: {
		v1alpha1.BakeInProgress, v1alpha1.BakeSucceeded, v1alpha1.BakeFailed, v1alpha1.BakeCancelled,
	},
	v1alpha1.BakeInProgress: {v1alpha1.BakeSucceeded, v1alpha1.BakeFailed, v1alpha1.BakeCancelled},
	v1alpha1.BakeSucceeded:  nil,
	v1alpha1.BakeFailed:     {v1alpha1.BakeDeploying}, // a retry
	v1alpha1.BakeCancelled:  nil,
}

// checkStep checks that only the state of a promotion changes, and only forwards.
func (s *Findings) checkStep(r *rollout, was, is *entry, newest, gap bool) {
	if identity(was) != identity(is) || !sameDigest(was, is) {
		s.complain("%s: promotion %d was rewritten", named(r.object), idOf(is))
	}
	from, to := was.State(), is.State()
	switch {
	case is.IsRollback() && to == v1alpha1.BakeFailed && from != to:
		s.complain("%s: rollback %d has failed", named(r.object), idOf(is))
	case gap, from == "":
	case from == to:
		s.checkEnd(r, was, is)
	case !slices.Contains(steps[from], to):
		s.complain("%s: promotion %d went from %s to %s", named(r.object), idOf(is), from, to)
	case newest:
		s.checkEvidence(r, is, from, to)
	}
}

// checkEnd checks that a promotion that has ended does not end again, unless it was
// retried meanwhile.
func (s *Findings) checkEnd(r *rollout, was, is *entry) {
	retried := !is.LastRetryTimestamp.Equal(was.LastRetryTimestamp)
	if !is.State().Running() && !retried && !is.BakeEndTime.Equal(was.BakeEndTime) {
		s.complain("%s: promotion %d ended twice", named(r.object), idOf(is))
	}
}

// identity returns the parts of a promotion that never change.
func identity(e *entry) string {
	return fmt.Sprintf("%s at %s by %s: %s", e.Version.Tag, e.Timestamp.UTC(), who(e), text(e.Message))
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func who(e *entry) string {
	if e.TriggeredBy == nil {
		return ""
	}
	return string(e.TriggeredBy.Kind) + " " + e.TriggeredBy.Name
}

// tooShort reports whether a bake ended before its time.
func tooShort(e *entry, bake *metav1.Duration) bool {
	return bake != nil && e.BakeStartTime != nil && e.BakeEndTime != nil && e.BakeEndTime.Sub(e.BakeStartTime.Time) < bake.Duration
}
