// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// setbacks is what the world remembers of failures and rollbacks.
type setbacks struct {
	// pushes are the releases that were pushed, manual is what users did, and acts is how
	// often the controller did something.
	pushes, manual, acts int
	// decided entries, without those for content that Flux deployed without a request.
	decided int
	// failures of releases that no user has tried again since, by the id of the entry.
	failures map[int64]v1alpha1.VersionInfo
	// forgiven are the tags whose failure a user has lifted.
	forgiven map[string]bool
	// succeeded releases.
	succeeded []v1alpha1.VersionInfo
	// rollbacks by the id of their entry, whatever the entry still says.
	rollbacks map[int64]bool
	// answered failures, each by a rollback.
	answered map[failure]bool
	// inARow counts the automatic promotions that have failed since one succeeded, or since
	// a user took part. counts is true if the current one will count when it fails.
	inARow int
	counts bool
}

// failure of an entry. A retry makes another one possible.
type failure struct {
	id      int64
	retried string
}

func failureOf(entry *v1alpha1.DeploymentHistoryEntry) failure {
	f := failure{id: *entry.ID}
	if entry.LastRetryTimestamp != nil {
		f.retried = entry.LastRetryTimestamp.UTC().String()
	}
	return f
}

func newSetbacks() setbacks {
	return setbacks{failures: map[int64]v1alpha1.VersionInfo{}, forgiven: map[string]bool{}, rollbacks: map[int64]bool{}, answered: map[failure]bool{}}
}

// unlike reports whether two releases are known to have different content.
func unlike(a, b v1alpha1.VersionInfo) bool {
	return digestOf(a) != "" && digestOf(b) != "" && digestOf(a) != digestOf(b)
}

// isByItself reports whether the controller chose the release without the help of a user.
func isByItself(in promotion.Input, d promotion.Decision) bool {
	return d.Action.Promotes() && d.Action != promotion.Adopt && d.Back == nil && !d.Manual &&
		d.Reason != v1alpha1.TagMovedReason && !in.Rollout.UnblocksFailed() && len(in.Rollout.Status.History) > 0
}

// checkBack checks a decision to go back.
//
// The release has succeeded here, because only the history names releases to go back to.
// It is neither the failed tag nor the failed content. A failure is answered at most once,
// because only the current entry is answered, and then the rollback is current. An old
// client that erases the mark of a rollback cannot change that: the message shows what it
// is.
func (w *world) checkBack(in promotion.Input, d promotion.Decision) {
	w.t.Helper()
	from, spec := in.Rollout.Current(), in.Rollout.Spec.Rollback
	switch {
	case from.State() != v1alpha1.BakeFailed || w.memory.rollbacks[*from.ID]:
		w.fail("a rollback answers %s, which is %s", from.Version.Tag, from.State())
	case w.memory.answered[failureOf(from)]:
		w.fail("the failure of %s is answered twice", from.Version.Tag)
	case from.RollbackDue == nil || w.now.Before(from.RollbackDue.Time) && !from.RollbackDue.Equal(from.BakeEndTime): // both are rounded up
		w.fail("%s is rolled back before its time: %v", from.Version.Tag, from.RollbackDue)
	case d.Back.FromID != *from.ID || d.Back.From != from.Version.Tag:
		w.fail("the rollback is said to answer %+v instead of #%d", d.Back, *from.ID)
	case in.Policy.Chosen(in.Rollout) != "" && d.Awaited == nil:
		w.fail("a rollback although a user chose %s", in.Policy.Chosen(in.Rollout))
	case d.Recovery == nil:
		w.fail("the rollback to %s can fail", d.Release.Tag)
	}
	w.memory.answered[failureOf(from)] = true
	release := d.Release
	if release.Tag == from.Version.Tag || digestOf(release) != "" && digestOf(release) == digestOf(from.Version) {
		w.fail("%s goes back to itself", release.Tag)
	}
	if !slices.ContainsFunc(w.memory.succeeded, func(v v1alpha1.VersionInfo) bool { return v.Tag == release.Tag && !unlike(v, release) }) {
		w.fail("the rollback goes to %s %s, which has not succeeded here", release.Tag, digestOf(release))
	}
	if order, ok := w.order.Compare(release.Tag, spec.NotBelow); spec.NotBelow != "" && (!ok || order < 0) {
		w.fail("the rollback goes to %s, below %s", release.Tag, spec.NotBelow)
	}
	for name, s := range w.schedules {
		if spec.Schedules == v1alpha1.RollbackSchedulesObey && !s.At(w.now).Open {
			w.fail("a rollback although schedule %s is closed", name)
		}
	}
}

// checkNotTriedAgain checks an automatic promotion of a Rollout that goes back by itself:
// the release has not failed here before, unless a user has tried it since, or its tag was
// pushed again. It also checks that not too many have failed in a row.
//
// Both hold although the history is cut: it keeps the failures of everything that can
// become a candidate by a rollback, and these failures are what is counted.
func (w *world) checkNotTriedAgain(in promotion.Input, d promotion.Decision) {
	w.t.Helper()
	for id, failed := range w.memory.failures {
		if failed.Tag == d.Release.Tag && !unlike(failed, d.Release) {
			w.fail("%s %s is promoted although it failed before, as #%d", failed.Tag, digestOf(failed), id)
		}
	}
	if most := in.Rollout.Spec.Rollback.GetMaxConsecutive(); w.memory.inARow >= most {
		w.fail("%s is promoted after %d failures in a row; the limit is %d", d.Release.Tag, w.memory.inARow, most)
	}
}

// rememberSetbacks follows failures and rollbacks, and checks what holds of all of them.
//
// A rollback never fails, because it is in recovery mode for as long as it is current. The
// number of entries has a limit: an automatic promotion goes to a release that has not
// failed here, and so do no more than one per release and per choice of a user. Each can
// fail, and then a rollback answers it. (A user who chooses the same release twice can
// cause two failures. So it is the choices that count twice, not only the releases.)
func (w *world) rememberSetbacks(in promotion.Input, d promotion.Decision) {
	w.t.Helper()
	if d.Action != promotion.Nothing && d.Action != promotion.Wait {
		w.memory.acts++
	}
	for i := range w.rollout.Status.History {
		entry := &w.rollout.Status.History[i]
		// The message shows it, even if an old client has erased the field.
		if entry.IsRollback() != w.memory.rollbacks[*entry.ID] && d.Back == nil {
			w.fail("#%d is taken for a rollback: %t", *entry.ID, entry.IsRollback())
		}
		if w.memory.rollbacks[*entry.ID] && entry.State() == v1alpha1.BakeFailed {
			w.fail("the rollback to %s has failed", entry.Version.Tag)
		}
		if _, ok := w.memory.failures[*entry.ID]; ok {
			w.memory.failures[*entry.ID] = entry.Version // its digest may have become known
		}
	}
	if d.Action.Promotes() {
		w.rememberPromotion(in, d)
	} else {
		w.rememberOutcome(d.Action)
	}
	if !in.Rollout.Spec.RollsBack() {
		return
	}
	if most := 2 * (w.memory.pushes + w.memory.manual); w.memory.decided > most {
		w.fail("%d entries after %d pushes and %d manual actions", w.memory.decided, w.memory.pushes, w.memory.manual)
	}
}

func (w *world) rememberPromotion(in promotion.Input, d promotion.Decision) {
	entry := w.current()
	moved := d.Reason == v1alpha1.TagMovedReason
	if !moved {
		w.memory.decided++
	}
	helped := d.Manual || d.Action == promotion.Adopt || strings.Contains(*entry.Message, "; a failure bypassed manually")
	if moved || helped {
		w.forgetFailuresOf(entry.Version.Tag)
	}
	if d.Manual {
		w.forgetCutFailures(in)
	}
	if helped {
		w.memory.inARow = 0
	}
	w.memory.counts = !helped && d.Back == nil
	w.memory.rollbacks[*entry.ID] = d.Back != nil
}

func (w *world) rememberOutcome(done promotion.Action) {
	entry := w.current()
	switch done {
	case promotion.FailBake:
		w.memory.failures[*entry.ID] = entry.Version
		delete(w.memory.forgiven, entry.Version.Tag)
		if w.memory.counts {
			w.memory.inARow++
		}
	case promotion.Retry:
		w.forgetFailuresOf(entry.Version.Tag)
		if w.memory.counts {
			w.memory.inARow--
		}
	case promotion.FinishBake:
		w.memory.succeeded = append(w.memory.succeeded, entry.Version)
		w.forgetFailuresOf(entry.Version.Tag)
		if !w.memory.rollbacks[*entry.ID] {
			w.memory.inARow = 0
		}
	case promotion.Nothing, promotion.Wait, promotion.StartBake, promotion.Promote, promotion.Supersede, promotion.Adopt:
	}
}

func (w *world) forgetFailuresOf(tag string) {
	for id, failed := range w.memory.failures {
		if failed.Tag == tag {
			delete(w.memory.failures, id)
		}
	}
}

// forgetCutFailures forgets the failures that the limit of the history has cut, after a
// user chose a release: that may be older than everything that the history still has.
func (w *world) forgetCutFailures(in promotion.Input) {
	for id := range w.memory.failures {
		if !slices.ContainsFunc(in.Rollout.Status.History, func(e v1alpha1.DeploymentHistoryEntry) bool { return *e.ID == id }) {
			delete(w.memory.failures, id)
		}
	}
}

// checkWakes checks that the controller looks again exactly when time alone changes what
// it does: until then the decision stays, and a rollback that waits for a time goes at
// that time, or says what else it waits for.
//
// It holds because everything that compares a time with now also asks to look again then.
//
// Most passes change nothing: every third one is checked, and every one in which a rollback
// waits for a time.
func (w *world) checkWakes(in promotion.Input, d promotion.Decision) {
	w.t.Helper()
	if d.Rollback.Until.IsZero() && w.iteration%3 != 0 {
		return
	}
	if !in.Rollout.Spec.RollsBack() || d.Action != promotion.Nothing && d.Action != promotion.Wait {
		return
	}
	then := in.Now.Add(30 * 24 * time.Hour)
	if !d.RecheckAt.IsZero() {
		then = d.RecheckAt.Add(-time.Nanosecond)
	}
	if later := w.decideAt(in, then); later.Action != d.Action || later.Rollback.Reason != d.Rollback.Reason {
		w.fail("at %s it would %s %s (rollback: %s), but it looks again at %s", then, later.Action, later.Release.Tag, later.Rollback.Reason, d.RecheckAt)
	}
	due := d.Rollback.Until
	if due.IsZero() || d.Rollback.Done {
		return
	}
	if d.RecheckAt.After(due) {
		w.fail("a rollback is due at %s, but it looks again at %s", due, d.RecheckAt)
	}
	if then := w.decideAt(in, due); then.Back == nil && then.Rollback.Hold == d.Rollback.Hold && !then.Action.Promotes() {
		w.fail("a rollback is due at %s, but then it does not go: %s", due, then.Rollback.Message)
	}
}

func (w *world) decideAt(in promotion.Input, t time.Time) promotion.Decision {
	in.Now, in.Gates.Schedules = t, windowsAt(w.schedules, t)
	return promotion.Decide(in)
}

// manually counts what a user does.
func (w *world) manually() { w.memory.manual++ }

// annotate makes a request by annotation.
func (w *world) annotate(key, value string) {
	metav1.SetMetaDataAnnotation(&w.rollout.ObjectMeta, key, value)
	w.memory.said = w.memory.said || key == user
	w.manually()
}
