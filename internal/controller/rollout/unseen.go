// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
)

// provesFirst reports whether an action says that the first release of a Rollout is
// applied. Without targets, that is true when it is promoted. A Rollout and its targets
// are often created together. Of later releases it is known which targets there are, and a
// target that is created then shows that it has not applied the release.
func provesFirst(s *gather.Snapshot, action promotion.Action) bool {
	switch len(s.Rollout.Status.History) {
	case 0:
		return action.Promotes() && len(s.Targets.All) == 0
	case 1:
		return s.Rollout.Current().State() == v1alpha1.BakeDeploying && (action == promotion.StartBake || action == promotion.FinishBake)
	}
	return false
}

// seesTargets postpones the decision if the caches do not show all that may be a target, or
// if they show other targets than those it was taken for. If what they lack is none, no
// event wakes the Rollout.
func (r *Reconciler) seesTargets(ctx context.Context, s *gather.Snapshot) error {
	if err := r.lookForTargets(ctx, s.Rollout); err != nil {
		return err
	}
	found, err := r.gatherer().Targets(ctx, client.ObjectKeyFromObject(s.Rollout))
	if err == nil && !slices.EqualFunc(found, s.Found, isSameObject) {
		err = postponed{"the caches show other targets than when the pass began", recheck.Overdue}
	}
	return err
}

func isSameObject(a, b targets.Target) bool { return a.Object().GetUID() == b.Object().GetUID() }

// lookForTargets postpones the decision until a look has found all Flux objects of the
// namespace in the caches. One look serves all Rollouts there that had promoted their
// releases before it.
func (r *Reconciler) lookForTargets(ctx context.Context, rollout *v1alpha1.Rollout) error {
	if current := rollout.Current(); current != nil && r.targetLists.after(rollout.Namespace, current.PromotedTime()) {
		return nil
	}
	if !r.targetLists.one.TryLock() {
		return postponed{"the targets of another first release are looked for", recheck.Overdue}
	}
	defer r.targetLists.one.Unlock()
	began := r.Now()
	unseen, err := r.gatherer().UnseenTarget(ctx, rollout.Namespace)
	switch {
	case err != nil:
		return err
	case unseen != "":
		return postponed{"the first release is proven for the targets in the caches, which do not show " + unseen + " yet", recheck.Overdue}
	}
	r.targetLists.found(rollout.Namespace, began)
	return nil
}

// targetLists remembers, by namespace, when the last look began that found all Flux objects in
// the caches.
type targetLists struct {
	one   sync.Mutex // is held during a look, because its pages may be large, and none may keep several workers
	mu    sync.Mutex
	began map[string]time.Time
}

// after reports whether that look began after a time, which has been cut to a second.
func (l *targetLists) after(namespace string, at time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.began[namespace].Before(at.Add(time.Second))
}

func (l *targetLists) found(namespace string, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.began == nil {
		l.began = map[string]time.Time{}
	}
	l.began[namespace] = began
}

// forget forgets a namespace, which may be gone.
func (l *targetLists) forget(namespace string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.began, namespace)
}
