// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"
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

// act makes the cluster follow the history. It writes the version of the newest entry to
// every target and resets the HealthChecks that must report again. It runs in every pass:
// a crash, a target annotated later and a target changed by hand are the same case. A
// history that is older than a target is not followed.
func (r *Reconciler) act(ctx context.Context, rollout *v1alpha1.Rollout, s gather.Snapshot, d promotion.Decision, recorded bool) error {
	if rollout.Current() == nil || s.Targets.Outdate(rollout.Status.History) {
		return nil
	}
	if d.Action.Promotes() {
		r.notePromotion(rollout, s.Found)
	}
	var errs []error
	for _, t := range r.overOwned(s.Found) {
		errs = append(errs, r.relinquish(ctx, rollout, t))
	}
	outdated, unreset := r.outdated(rollout, s.Found), r.unreset(s.Health.Checks, d.Resets)
	if len(outdated)+len(unreset) == 0 {
		return errors.Join(errs...)
	}
	if err := r.confirm(ctx, rollout, recorded); err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, t := range outdated {
		errs = append(errs, r.write(ctx, rollout, t, d))
	}
	for i := range unreset {
		errs = append(errs, r.reset(ctx, rollout, &unreset[i]))
	}
	return errors.Join(errs...)
}

// outdated returns the targets that, as far as the cache shows, lack the version of the
// newest entry and may be written now.
func (r *Reconciler) outdated(rollout *v1alpha1.Rollout, all []targets.Target) []targets.Target {
	version := rollout.Current().Version.Tag
	var outdated []targets.Target
	for _, t := range all {
		if t.Writable(version) && !r.writes.Stale(t.Object()) && r.conflicts.mayWrite(rollout, t, version, r.Now()) {
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
func (r *Reconciler) accepted(rollout *v1alpha1.Rollout, t targets.Target) {
	r.writes.Wrote(t.Object())
	r.rejections.put(client.ObjectKeyFromObject(rollout), t.Object(), nil)
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
	r.accepted(rollout, t)
	contested := r.noteWrite(rollout, t)
	if !contested && !current.State().Running() && !d.Action.Promotes() {
		announce.Event(ctx, r.Events, rollout, corev1.EventTypeNormal, v1alpha1.TargetRestoredReason,
			fmt.Sprintf("%s had drifted and was set to %s again", t, current.Version.Tag))
	}
	return nil
}
