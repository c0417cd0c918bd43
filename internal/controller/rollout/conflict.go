// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/fieldconflict"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// targetConflict is what is remembered of the writes to one target. Only the pass of its
// Rollout uses it.
type targetConflict struct {
	fieldconflict.Conflict
	lookedUp string // resourceVersion of the copy whose field managers were looked up
}

// nextConflict is the earliest time at which time alone changes something in a conflict; zero if
// none waits for it. A target to which the version cannot be written is not waited for:
// the change that makes it writable wakes the Rollout.
func (m *remembered) nextConflict(current *v1alpha1.DeploymentHistoryEntry, found []targets.Target) time.Time {
	next := time.Time{}
	for _, t := range found {
		conflict := m.conflicts.of(t.Object())
		if conflict == nil || current == nil || conflict.Lost() && !t.Writable(targets.ReleaseOf(current)) {
			continue
		}
		next = verdict.Earlier(next, conflict.Next())
	}
	return next
}

// mayWrite reports whether a version may be written to a target now.
func (m *remembered) mayWrite(t targets.Target, release targets.Release, now time.Time) bool {
	conflict := m.conflicts.of(t.Object())
	return conflict == nil || conflict.MayWrite(t.Written(release), now)
}

// judgeConflict turns what a target reports into a conflict while its field is contested.
// It reads past the cache only when the field was overwritten, to find out by whom.
func (r *Reconciler) judgeConflict(ctx context.Context, rollout *v1alpha1.Rollout, t targets.Target, seen content.Target) (content.Target, error) {
	current := rollout.Current()
	if current == nil {
		return seen, nil
	}
	m, release := r.memory.of(client.ObjectKeyFromObject(rollout)), targets.ReleaseOf(current)
	c := m.conflictOf(rollout, t, seen, r.Now())
	switch {
	case c == nil:
		return seen, nil
	case r.writes.Stale(t.Object()):
		// the copy is older than the last write, and shows nothing of what followed
	case !c.IsWritten(t.Written(release)):
		if t.Carries(release) { // another writer has set it, and so agrees
			m.conflicts.put(t.Object(), nil)
			return seen, nil
		}
	case t.Carries(targets.AsWritten(c.Version())):
		c.Kept(r.Now())
	default:
		if err := c.lookUpManager(ctx, r.APIReader, t, r.Now()); err != nil {
			return seen, err
		}
	}
	if c.Message() != "" && seen.State != v1alpha1.TargetConflict {
		seen.State, seen.Reason, seen.Message = v1alpha1.TargetConflict, v1alpha1.TargetContested, c.Message()
	}
	return seen, nil
}

// conflictOf returns what is remembered of a target. A conflict that this process does
// not remember but the status shows goes on with a pause.
func (m *remembered) conflictOf(rollout *v1alpha1.Rollout, t targets.Target, seen content.Target, now time.Time) *targetConflict {
	if c := m.conflicts.of(t.Object()); c != nil {
		return c
	}
	release := targets.ReleaseOf(rollout.Current())
	was := seen.StoredIn(rollout.Status.Targets, release.Tag)
	if was == nil || was.Reason != v1alpha1.TargetContested {
		return nil
	}
	c := &targetConflict{Conflict: *fieldconflict.Resume(strings.Clone(t.Written(release)), was.Message, now)}
	m.conflicts.put(t.Object(), c)
	return c
}

// lookUpManager reads which manager owns the field that was overwritten, once per change
// of the object.
func (c *targetConflict) lookUpManager(ctx context.Context, reader client.Reader, t targets.Target, now time.Time) error {
	version := t.Object().GetResourceVersion()
	if c.lookedUp == version {
		return nil
	}
	live, err := t.LiveWithOwners(ctx, reader)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case live.Carries(targets.AsWritten(c.Version())):
		return nil // the cache is behind
	}
	c.lookedUp = strings.Clone(version) // it is kept for longer than this version of the object
	by := live.Taken(targets.AsWritten(c.Version()))
	c.Overwritten(fieldconflict.Manager{Message: by.String(), Known: by.Named(), Applies: by.Applied}, now)
	return nil
}

// notePromotion notes that a release was promoted and is to be written to the targets, in
// this pass or in a later one.
func (m *remembered) notePromotion(release targets.Release, found []targets.Target) {
	for _, t := range found {
		if t.Writable(release) {
			m.conflict(t).Promoted()
		}
	}
}

// noteWrite notes a write, and reports whether the field of the target is contested.
func (m *remembered) noteWrite(release targets.Release, t targets.Target, now time.Time) (contested bool) {
	c := m.conflict(t)
	if !c.Wrote(strings.Clone(t.Written(release)), now) {
		m.conflicts.put(t.Object(), nil)
		return false
	}
	return c.Message() != ""
}

// conflict returns what is remembered of a target, and remembers it from now on.
func (m *remembered) conflict(t targets.Target) *targetConflict {
	c := m.conflicts.of(t.Object())
	if c == nil {
		c = &targetConflict{}
		m.conflicts.put(t.Object(), c)
	}
	return c
}
