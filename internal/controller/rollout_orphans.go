// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/target"
)

// orphans remembers which targets were told that the Rollout they name does
// not exist, so that each is told once.
type orphans struct {
	mu   sync.Mutex
	told map[orphan]bool
}

type orphan struct {
	target  types.UID
	rollout types.NamespacedName
}

// reportOrphans warns on each object that names a Rollout which does not
// exist. There is no Rollout to carry a condition, and the status of a Flux
// object is Flux's, so the event is all there is. What the object carries
// stays as it is.
func (r *RolloutReconciler) reportOrphans(ctx context.Context, rollout types.NamespacedName) error {
	targets, err := target.Find(ctx, r.Client, rollout)
	if err != nil {
		return fmt.Errorf("find what names Rollout %s: %w", rollout, err)
	}
	for _, t := range targets {
		if names(t, rollout.Name) && r.orphans.tellOnce(orphan{target: t.Object().GetUID(), rollout: rollout}) {
			r.Events.Eventf(t.Object(), corev1.EventTypeWarning, v1alpha1.RolloutNotFoundReason,
				"an annotation names Rollout %s, which does not exist: create it, or correct the annotation", rollout)
		}
	}
	return nil
}

// names reports whether the target names the Rollout itself, rather than
// consuming what does.
func names(t target.Target, rollout string) bool {
	return len(t.Variables) > 0 || t.Repository != nil && target.RolloutOf(t.Repository) == rollout
}

func (o *orphans) tellOnce(key orphan) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told == nil {
		o.told = map[orphan]bool{}
	}
	first := !o.told[key]
	o.told[key] = true
	return first
}

// forget makes sure that the targets of a Rollout are told again should it
// vanish once more.
func (o *orphans) forget(rollout types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key := range o.told {
		if key.rollout == rollout {
			delete(o.told, key)
		}
	}
}
