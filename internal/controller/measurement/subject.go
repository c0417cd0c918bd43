// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

const (
	// indexUID finds Rollouts by their UID.
	indexUID = fieldindex.Everywhere + ".metadata.uid"
	// indexReset finds HealthChecks by the UIDs of the Rollouts that have reset them.
	indexReset = fieldindex.Everywhere + ".metadata.annotations.reset"
)

func rolloutUID(o client.Object) []string { return []string{string(o.GetUID())} }

func resetBy(o client.Object) []string {
	check, ok := o.(*v1alpha1.HealthCheck)
	if !ok || !check.IsMeasured() {
		return nil
	}
	var all []string
	for _, uid := range promotion.ResetBy(check) {
		all = append(all, string(uid))
	}
	return all
}

// subject is what a HealthCheck is measured for.
type subject struct {
	// rollout has reset the check. It is nil if none has, or if none of those that have
	// exists any more.
	rollout *v1alpha1.Rollout
	// awaited is true if the running promotion of the Rollout depends on the check.
	awaited bool
	// shared is true if other Rollouts have reset the check as well.
	shared bool
}

// subjectOf returns what a check is measured for. If several Rollouts share it, one whose
// promotion depends on it comes first.
func (r *Reconciler) subjectOf(ctx context.Context, check *v1alpha1.HealthCheck) (s subject, err error) {
	for _, uid := range promotion.ResetBy(check) {
		list := &v1alpha1.RolloutList{}
		err := r.Client.List(ctx, list, client.MatchingFields{indexUID: string(uid)}, client.UnsafeDisableDeepCopy, unreadable.Left{})
		if err != nil {
			return s, fmt.Errorf("find the Rollout that has reset a HealthCheck: %w", err)
		}
		for i := range list.Items {
			s.add(&list.Items[i], check)
		}
	}
	return s, nil
}

func (s *subject) add(rollout *v1alpha1.Rollout, check *v1alpha1.HealthCheck) {
	awaited := promotion.Awaits(rollout, check)
	s.shared = s.rollout != nil
	if s.rollout == nil || awaited && !s.awaited {
		s.rollout, s.awaited = rollout, awaited
	}
}

// entry returns the current promotion of the Rollout; nil if there is none.
func (s *subject) entry() *v1alpha1.DeploymentHistoryEntry {
	if s.rollout == nil {
		return nil
	}
	return s.rollout.Current()
}

// before returns the promotion before the current one; nil if there is none.
func (s *subject) before() *v1alpha1.DeploymentHistoryEntry {
	if s.rollout == nil || len(s.rollout.Status.History) < 2 {
		return nil
	}
	return &s.rollout.Status.History[1]
}
