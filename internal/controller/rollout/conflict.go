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
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// targetConflict is what is remembered of the writes to one target. Only the pass of its
// Rollout uses it.
type targetConflict struct {
	fieldconflict.Conflict
	lookedUp string // resourceVersion of the copy whose field managers were looked up
}

// fieldConflicts remembers, per Rollout and target, what had to be written again. That a
// target is contested is in the status.
type fieldConflicts struct{ perObject[targetConflict] }

// next is the earliest time at which time alone changes something in a conflict; zero if
// none waits for it. A target to which the version cannot be written is not waited for:
// the change that makes it writable wakes the Rollout.
func (c *fieldConflicts) next(rollout *v1alpha1.Rollout, found []targets.Target) time.Time {
	key, current, next := client.ObjectKeyFromObject(rollout), rollout.Current(), time.Time{}
	for _, t := range found {
		conflict := c.of(key, t.Object())
		if conflict == nil || current == nil || conflict.Lost() && !t.Writable(current.Version.Tag) {
			continue
		}
		next = earliest(next, conflict.Next())
	}
	return next
}

// mayWrite reports whether a version may be written to a target now.
func (c *fieldConflicts) mayWrite(rollout *v1alpha1.Rollout, t targets.Target, version string, now time.Time) bool {
	conflict := c.of(client.ObjectKeyFromObject(rollout), t.Object())
	return conflict == nil || conflict.MayWrite(version, now)
}

// judgeConflict turns what a target reports into a conflict while its field is contested.
// It reads past the cache only when the field was overwritten, to find out by whom.
func (r *Reconciler) judgeConflict(ctx context.Context, rollout *v1alpha1.Rollout, t targets.Target, seen promotion.Target) (promotion.Target, error) {
	current := rollout.Current()
	if current == nil {
		return seen, nil
	}
	c := r.conflictOf(rollout, t, seen)
	switch {
	case c == nil:
		return seen, nil
	case r.writes.Stale(t.Object()):
		// the copy is older than the last write, and shows nothing of what followed
	case !c.IsWritten(current.Version.Tag):
		if t.Carries(current.Version.Tag) { // another writer has set it, and so agrees
			r.conflicts.put(client.ObjectKeyFromObject(rollout), t.Object(), nil)
			return seen, nil
		}
	case t.Carries(c.Version()):
		c.Kept(r.Now())
	default:
		if err := r.lookUpManager(ctx, c, t); err != nil {
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
func (r *Reconciler) conflictOf(rollout *v1alpha1.Rollout, t targets.Target, seen promotion.Target) *targetConflict {
	key := client.ObjectKeyFromObject(rollout)
	if c := r.conflicts.of(key, t.Object()); c != nil {
		return c
	}
	version := rollout.Current().Version.Tag
	was := seen.StoredIn(rollout.Status.Targets, version)
	if was == nil || was.Reason != v1alpha1.TargetContested {
		return nil
	}
	c := &targetConflict{Conflict: *fieldconflict.Resume(strings.Clone(version), was.Message, r.Now())}
	r.conflicts.put(key, t.Object(), c)
	return c
}

// lookUpManager reads which manager owns the field that was overwritten, once per change
// of the object.
func (r *Reconciler) lookUpManager(ctx context.Context, c *targetConflict, t targets.Target) error {
	version := t.Object().GetResourceVersion()
	if c.lookedUp == version {
		return nil
	}
	live, err := t.LiveWithOwners(ctx, r.APIReader)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case live.Carries(c.Version()):
		return nil // the cache is behind
	}
	c.lookedUp = strings.Clone(version) // it is kept for longer than this version of the object
	by := live.Taken(c.Version())
	c.Overwritten(fieldconflict.Manager{Message: by.String(), Known: by.Named(), Applies: by.Applied}, r.Now())
	return nil
}

// notePromotion notes that a version was promoted and is to be written to the targets, in
// this pass or in a later one.
func (r *Reconciler) notePromotion(rollout *v1alpha1.Rollout, found []targets.Target) {
	version := rollout.Current().Version.Tag
	for _, t := range found {
		if t.Writable(version) {
			r.rememberedConflict(rollout, t).Promoted()
		}
	}
}

// noteWrite notes a write, and reports whether the field of the target is contested.
func (r *Reconciler) noteWrite(rollout *v1alpha1.Rollout, t targets.Target) (contested bool) {
	c := r.rememberedConflict(rollout, t)
	if !c.Wrote(strings.Clone(rollout.Current().Version.Tag), r.Now()) {
		r.conflicts.put(client.ObjectKeyFromObject(rollout), t.Object(), nil)
		return false
	}
	return c.Message() != ""
}

// rememberedConflict returns what is remembered of a target, and remembers it from now on.
func (r *Reconciler) rememberedConflict(rollout *v1alpha1.Rollout, t targets.Target) *targetConflict {
	key := client.ObjectKeyFromObject(rollout)
	c := r.conflicts.of(key, t.Object())
	if c == nil {
		c = &targetConflict{}
		r.conflicts.put(key, t.Object(), c)
	}
	return c
}
