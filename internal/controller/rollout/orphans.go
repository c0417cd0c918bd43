// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
)

// orphanGrace is how long an annotation may name a Rollout that does not exist before a
// warning: objects that are applied together are created one by one.
const orphanGrace = 10 * time.Second

// orphans remembers since when targets name a Rollout that does not exist, to report each
// target once.
//
// The map is grouped by Rollout because every pass of every Rollout asks whether there is
// something to forget.
type orphans struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]map[types.UID]*sighting
}

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
	if exists, err := r.Shard.Exists(ctx, rollout); exists || err != nil {
		r.orphans.forgetBut(rollout, nil)
		return ctrl.Result{}, err
	}
	found, err := r.gatherer().Targets(ctx, rollout)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("find what names Rollout %s: %w", rollout, err)
	}
	found = slices.DeleteFunc(found, func(t targets.Target) bool { return !names(t, rollout.Name) })
	r.orphans.forgetBut(rollout, found)
	var result ctrl.Result
	for _, t := range found {
		report, wait := r.orphans.due(rollout, t.Object().GetUID(), r.Now())
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
func (o *orphans) due(rollout types.NamespacedName, target types.UID, now time.Time) (report bool, wait time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil {
		o.seen = map[types.NamespacedName]map[types.UID]*sighting{}
	}
	if o.seen[rollout] == nil {
		o.seen[rollout] = map[types.UID]*sighting{}
	}
	s := o.seen[rollout][target]
	if s == nil {
		s = &sighting{since: now}
		o.seen[rollout][target] = s
	}
	if wait = s.since.Add(orphanGrace).Sub(now); wait > 0 {
		return false, wait
	}
	report, s.reported = !s.reported, true
	return report, 0
}

// forgetBut forgets all other targets. They are reported again if they name the missing
// Rollout again.
func (o *orphans) forgetBut(rollout types.NamespacedName, found []targets.Target) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.seen[rollout], func(uid types.UID, _ *sighting) bool {
		return !slices.ContainsFunc(found, func(t targets.Target) bool { return t.Object().GetUID() == uid })
	})
	if len(o.seen[rollout]) == 0 {
		delete(o.seen, rollout)
	}
}
