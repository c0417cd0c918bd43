// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// mostWrites is how many objects a pass writes. Then it gives its worker to others, and the
// next pass does the rest.
const mostWrites = 50

// act makes the cluster follow the history. It writes the version of the newest entry to
// every target and resets the HealthChecks that must report again. It runs in every pass:
// a crash, a target annotated later, a target changed by hand and what is left of the pass
// before are the same case. A history that is older than a target is not followed. It reports
// whether something is left for the next pass.
func (r *Reconciler) act(ctx context.Context, rollout *v1alpha1.Rollout, s gather.Snapshot, d promotion.Decision, recorded bool) (more bool, err error) {
	if rollout.Current() == nil || s.Targets.Outdate(rollout.Status.History) {
		return false, nil
	}
	if d.Action.Promotes() {
		r.memory.of(client.ObjectKeyFromObject(rollout)).notePromotion(targets.ReleaseOf(rollout.Current()), s.Found)
	}
	all := r.tasks(rollout, s, d)
	now := all[:min(len(all), mostWrites)]
	var errs []error
	if slices.ContainsFunc(now, func(t task) bool { return t.follows }) {
		if err := r.confirm(ctx, rollout, recorded); err != nil {
			errs = append(errs, err)
			now = slices.DeleteFunc(now, func(t task) bool { return t.follows })
		}
	}
	for _, t := range now {
		errs = append(errs, t.do(ctx))
	}
	return len(all) > mostWrites, errors.Join(errs...)
}

// task is the write of one object.
type task struct {
	do func(context.Context) error
	// follows is true if the write follows the history, which must not be old.
	follows bool
	// rejected is true if the API server has rejected it before.
	rejected bool
}

// tasks returns the writes that are due, those that may be rejected again last: they must not
// keep the others from their turn.
func (r *Reconciler) tasks(rollout *v1alpha1.Rollout, s gather.Snapshot, d promotion.Decision) []task {
	var all []task
	m := r.memory.of(client.ObjectKeyFromObject(rollout))
	for _, t := range r.overOwned(s.Found) {
		do := func(ctx context.Context) error { return r.relinquish(ctx, rollout, t) }
		all = append(all, task{do, false, m.rejections.of(t.Object()) != nil})
	}
	for _, t := range r.outdated(rollout, s.Found) {
		do := func(ctx context.Context) error { return r.write(ctx, rollout, t, d) }
		all = append(all, task{do, true, m.rejections.of(t.Object()) != nil})
	}
	for _, check := range r.resetter().unreset(s.Health.Checks, d.Resets) {
		do := func(ctx context.Context) error { return r.reset(ctx, rollout, &check) }
		all = append(all, task{do, true, m.resets.of(&check) != nil})
	}
	slices.SortStableFunc(all, func(a, b task) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

func rank(t task) int {
	if t.rejected {
		return 1
	}
	return 0
}

// outdated returns the targets that, as far as the cache shows, lack the version of the
// newest entry and may be written now.
func (r *Reconciler) outdated(rollout *v1alpha1.Rollout, all []targets.Target) []targets.Target {
	release, m := targets.ReleaseOf(rollout.Current()), r.memory.of(client.ObjectKeyFromObject(rollout))
	var outdated []targets.Target
	for _, t := range all {
		if t.Writable(release) && !r.writes.Stale(t.Object()) && m.mayWrite(t, release, r.Now()) {
			outdated = append(outdated, t)
		}
	}
	return outdated
}

// overOwned returns the targets of which, as far as the cache shows, the field manager
// owns more than it should.
func (r *Reconciler) overOwned(all []targets.Target) []targets.Target {
	return slices.DeleteFunc(slices.Clone(all), func(t targets.Target) bool {
		return !t.OwnsTooMuch() || r.writes.Stale(t.Object())
	})
}

// relinquish ends, once, the ownership of fields that belong to others: fields that another
// controller applied under the same field manager, or that an annotation gave up.
func (r *Reconciler) relinquish(ctx context.Context, rollout *v1alpha1.Rollout, t targets.Target) error {
	err := t.Relinquish(ctx, r.APIReader, r.Client)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return rejected(t, err)
	}
	r.accepted(rollout, t)
	return nil
}

// accepted records that the API server accepted a write to a target.
func (r *Reconciler) accepted(rollout *v1alpha1.Rollout, t targets.Target) *remembered {
	r.writes.Wrote(t.Object())
	m := r.memory.of(client.ObjectKeyFromObject(rollout))
	m.rejections.put(t.Object(), nil)
	return m
}

// write brings one target to the current version. A deleted target needs no write.
func (r *Reconciler) write(ctx context.Context, rollout *v1alpha1.Rollout, t targets.Target, d promotion.Decision) error {
	current := rollout.Current()
	err := t.Write(ctx, r.Client, rollout.Name, current, r.Now())
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return rejected(t, err)
	}
	contested := r.accepted(rollout, t).noteWrite(targets.ReleaseOf(current), t, r.Now())
	if !contested && !current.State().Running() && !d.Action.Promotes() {
		reason, message := t.Corrected(targets.ReleaseOf(current))
		announce.Event(ctx, r.Events, rollout, corev1.EventTypeNormal, reason, message)
	}
	return nil
}
