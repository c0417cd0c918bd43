// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// A target that somebody changed is put back at once. If it is taken back
// again soon, its field is contested: another writer wants it otherwise and
// will not stop by being overwritten. From then on it is written ever more
// rarely, until the other writer lets go.
const (
	// shortestPause is between the first two writes to a contested target; it
	// doubles with each that follows.
	shortestPause = 30 * time.Second
	// longestPause is where the doubling ends. It is also how soon a writer
	// without a plan, such as a person, must take a field back to contest it.
	longestPause = 10 * time.Minute
	// applyAgain is how soon an applier must. Appliers come back on a schedule,
	// and few schedules are longer.
	applyAgain = 2 * time.Hour
)

// contest is the struggle of a Rollout for its field of one target, or the
// memory of a write that may become one. Only the pass of its Rollout uses it.
type contest struct {
	version string        // that was written last
	owed    bool          // a version was promoted and is not written yet
	wrote   time.Time     // when; zero if nothing can be concluded from it any more
	rival   string        // who takes it back, and the remedy; empty while nobody does
	named   bool          // the rival is known by name
	taken   bool          // the field was taken back since the last write
	losses  int           // how often it was, since the rival is known
	longest time.Duration // that a write held before it was taken back
	seen    string        // resourceVersion of the copy whose owners were looked up
}

// contests remembers, per Rollout and target, what had to be written again. That a
// target is contested is in the status.
type contests struct{ perObject[contest] }

// next is the earliest moment at which time alone moves a contest on; zero if none
// waits for it. A target to which the version cannot be written is waited for in
// vain: whoever made it so wakes the Rollout.
func (c *contests) next(rollout *v1alpha1.Rollout, found []targets.Target) time.Time {
	key, current, next := client.ObjectKeyFromObject(rollout), rollout.Current(), time.Time{}
	for _, t := range found {
		contest := c.of(key, t.Object())
		if contest == nil || current == nil || contest.taken && !t.Writable(current.Version.Tag) {
			continue
		}
		next = earliest(next, contest.next())
	}
	return next
}

// judgeContest makes of what a target reports a conflict while its field is
// contested. Only when the field was taken back it reads past the cache, for
// the owner's name.
func (r *RolloutReconciler) judgeContest(ctx context.Context, rollout *v1alpha1.Rollout, t targets.Target, seen promotion.Target) (promotion.Target, error) {
	current := rollout.Current()
	if current == nil {
		return seen, nil
	}
	c := r.contestOf(rollout, t, seen)
	switch {
	case c == nil:
		return seen, nil
	case r.writes.Ahead(t.Object()):
		// what the target carries says nothing about the last write
	case c.owed, c.version != current.Version.Tag:
		if t.Carries(current.Version.Tag) { // by somebody else's hand, who so agrees
			r.contests.put(client.ObjectKeyFromObject(rollout), t.Object(), nil)
			return seen, nil
		}
	case t.Carries(c.version):
		c.kept(r.Now())
	default:
		if err := r.lookUpRival(ctx, c, t); err != nil {
			return seen, err
		}
	}
	if c.rival != "" && seen.State != v1alpha1.TargetConflict {
		seen.State, seen.Message = v1alpha1.TargetConflict, c.rival
	}
	return seen, nil
}

// contestOf returns the contest for a target. One that this process does not
// remember but the status does goes on with a pause: who restarted the
// process, and how often, must not matter.
func (r *RolloutReconciler) contestOf(rollout *v1alpha1.Rollout, t targets.Target, seen promotion.Target) *contest {
	key := client.ObjectKeyFromObject(rollout)
	if c := r.contests.of(key, t.Object()); c != nil {
		return c
	}
	version := rollout.Current().Version.Tag
	was := seen.StoredIn(rollout.Status.Targets, version)
	if was == nil || was.State != v1alpha1.TargetConflict || !targets.IsTaking(was.Message) {
		return nil
	}
	c := &contest{version: strings.Clone(version), wrote: r.Now(), rival: was.Message, named: true, longest: longestPause}
	r.contests.put(key, t.Object(), c)
	return c
}

// lookUpRival reads who owns the field that was taken back, once per change of
// the object.
func (r *RolloutReconciler) lookUpRival(ctx context.Context, c *contest, t targets.Target) error {
	version := t.Object().GetResourceVersion()
	if c.seen == version {
		return nil
	}
	live, err := t.Live(ctx, r.APIReader)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	case live.Carries(c.version):
		return nil // the cache is behind
	}
	c.seen = strings.Clone(version) // the contest stays for longer than this version of the object
	c.lost(live.Taken(c.version), r.Now())
	return nil
}

// lost notes that the field does not carry what was written.
func (c *contest) lost(by targets.Taking, now time.Time) {
	held := now.Sub(c.wrote)
	switch {
	case c.rival != "" && c.named && !by.Named(): // the rival let go
		*c = contest{version: c.version, seen: c.seen}
		return
	case c.rival == "" && held > contestedWithin(by):
		return
	case !c.taken:
		c.losses++
		c.longest = max(c.longest, held)
	}
	c.taken = true
	c.rival, c.named = by.String(), by.Named()
}

// contestedWithin is how soon after a write the field must be taken back to be
// contested.
func contestedWithin(by targets.Taking) time.Duration {
	if by.Applied {
		return applyAgain
	}
	return longestPause
}

// kept notes that the field carries what was written. If it does so without
// another write, the rival agrees; if it does for longer than it ever held
// before, the rival has gone.
func (c *contest) kept(now time.Time) {
	if c.taken || !now.Before(c.proof()) {
		c.end()
	}
}

// end keeps in mind only that, and when, the target had to be written again.
func (c *contest) end() {
	*c = contest{version: c.version, wrote: c.wrote, seen: c.seen}
}

// owe notes that a version was promoted and is to be written to the targets, be
// it in this pass or, where something comes between, in a later one.
func (r *RolloutReconciler) owe(rollout *v1alpha1.Rollout, found []targets.Target) {
	key, version := client.ObjectKeyFromObject(rollout), rollout.Current().Version.Tag
	for _, t := range found {
		if !t.Writable(version) {
			continue
		}
		c := r.contests.of(key, t.Object())
		if c == nil {
			c = &contest{}
			r.contests.put(key, t.Object(), c)
		}
		c.owed = true
	}
}

// wroteTarget notes a write, and reports whether the target is contested. The
// first write of a promotion begins nothing.
func (r *RolloutReconciler) wroteTarget(rollout *v1alpha1.Rollout, t targets.Target) (contested bool) {
	key := client.ObjectKeyFromObject(rollout)
	c := r.contests.of(key, t.Object())
	switch {
	case c == nil:
		c = &contest{}
		r.contests.put(key, t.Object(), c)
	case c.owed && c.rival == "":
		r.contests.put(key, t.Object(), nil)
		return false
	}
	c.version, c.wrote, c.taken, c.owed = strings.Clone(rollout.Current().Version.Tag), r.Now(), false, false
	return c.rival != ""
}

// mayWrite reports whether a version may be written now. A version that was not
// written yet always may.
func (c *contest) mayWrite(version string, now time.Time) bool {
	return c == nil || c.rival == "" || c.version != version || !now.Before(c.due())
}

// due is when the target may be written again.
func (c *contest) due() time.Time {
	pause := shortestPause
	for range c.losses - 1 {
		pause = min(2*pause, longestPause)
	}
	return c.wrote.Add(pause)
}

// proof is when a write has held for so long that the rival must have come by.
// Schedules are kept roughly.
func (c *contest) proof() time.Time {
	return c.wrote.Add(c.longest + c.longest/4 + shortestPause)
}

func (c *contest) next() time.Time {
	switch {
	case c.rival == "":
		return time.Time{}
	case c.taken:
		return c.due()
	}
	return c.proof()
}
