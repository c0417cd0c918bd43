// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
)

// orphanGrace is how long an annotation may name a Rollout that does not exist before a
// warning: objects that are applied together are created one by one.
const orphanGrace = 10 * time.Second

// sighting is since when a target names a Rollout that does not exist. Each is reported
// once, and again if it has named another one meanwhile.
type sighting struct {
	since    time.Time
	reported bool
}

// reportOrphans warns on each object that names a Rollout that does not exist. There is
// no Rollout for a condition, and the status of a Flux object belongs to Flux, so only an
// event is possible. The object stays as it is. If there are several instances, only the
// one that reconciles Rollouts without labels warns, and only if no other instance has
// the Rollout.
func (r *Reconciler) reportOrphans(ctx context.Context, rollout types.NamespacedName) (ctrl.Result, error) {
	if !r.Shard.TakesUnlabelled() {
		return ctrl.Result{}, nil
	}
	m := r.memory.of(rollout)
	if exists, err := r.Shard.Exists(ctx, rollout); exists || err != nil {
		m.orphans = nil
		return ctrl.Result{}, err
	}
	found, err := r.gatherer().Targets(ctx, rollout)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("find what names Rollout %s: %w", rollout, err)
	}
	found = slices.DeleteFunc(found, func(t targets.Target) bool { return !names(t, rollout.Name) })
	m.orphans.forgetBut(found)
	var result ctrl.Result
	for _, t := range found {
		report, wait := m.due(t.Object(), r.Now())
		if report {
			announce.Event(announce.About(ctx, t.Kind(), t.Object()), r.Events, t.Object(), corev1.EventTypeWarning, v1alpha1.RolloutNotFoundReason,
				fmt.Sprintf("an annotation names Rollout %s, which does not exist: create it, or correct the annotation", rollout))
		}
		result.RequeueAfter = max(result.RequeueAfter, wait)
	}
	return result, nil
}

// names reports whether the target names the Rollout itself, and not only consumes an
// object that does.
func names(t targets.Target, rollout string) bool {
	return len(t.Variables)+len(t.Paths) > 0 || t.Repository != nil && targets.RolloutOf(t.Repository) == rollout
}

// due reports whether an orphan must be reported now, or else how long to wait; zero if
// it was reported.
func (m *remembered) due(target client.Object, now time.Time) (report bool, wait time.Duration) {
	s := m.orphans.of(target)
	if s == nil {
		s = &sighting{since: now}
		m.orphans.put(target, s)
	}
	if wait = s.since.Add(orphanGrace).Sub(now); wait > 0 {
		return false, wait
	}
	report, s.reported = !s.reported, true
	return report, 0
}
