// SPDX-License-Identifier: Apache-2.0

package measurement

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cache/fieldindex"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/health/activity"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

const (
	// indexUID finds Rollouts by their UID.
	indexUID = fieldindex.Everywhere + ".metadata.uid"
	// indexReset finds HealthChecks by the UIDs of the Rollouts that have reset them.
	indexReset = fieldindex.Everywhere + ".metadata.annotations.reset"
)

func rolloutUID(o client.Object) []string { return []string{string(o.GetUID())} }

func marksOf(o client.Object) []string {
	check, ok := o.(*v1alpha1.HealthCheck)
	if !ok || !check.IsMeasured() {
		return nil
	}
	var all []string
	for _, uid := range evidence.ResetBy(check) {
		all = append(all, string(uid))
	}
	return all
}

// subject is what a HealthCheck is measured for: the Rollouts that have reset it, and still
// select it. The mark of a reset may outlive both.
type subject struct {
	// rollout is one of them; nil if there is none for which this instance acts.
	rollout *v1alpha1.Rollout
	// promotion says whether the running promotion of the Rollout depends on the check.
	promotion activity.Promotion
	// elsewhere is one for which another instance acts; empty if there is none.
	elsewhere string
	// count is how many there are, whichever instance acts for them.
	count int
}

// shared reports whether there are several Rollouts.
func (s *subject) shared() bool { return s.count > 1 }

// subjectOf returns what a check is measured for. If several Rollouts share it, one whose
// promotion depends on it comes first.
func (r *Reconciler) subjectOf(ctx context.Context, check *v1alpha1.HealthCheck) (subject, error) {
	s := subject{promotion: activity.None}
	for _, uid := range evidence.ResetBy(check) {
		rollout, isOwn, err := r.resetBy(ctx, uid)
		if err != nil {
			return s, err
		}
		selects, err := r.selects(ctx, rollout, check)
		switch {
		case err != nil:
			return s, err
		case selects && isOwn:
			s.add(rollout, check)
		case selects:
			s.addElsewhere(rollout)
		}
	}
	return s, nil
}

// selects reports whether a Rollout exists, and selects the check.
func (r *Reconciler) selects(ctx context.Context, rollout *v1alpha1.Rollout, check *v1alpha1.HealthCheck) (bool, error) {
	if rollout == nil {
		return false, nil
	}
	selects, err := gather.Selects(ctx, r.Client, rollout, check)
	if err != nil {
		return false, fmt.Errorf("find out who selects a HealthCheck: %w", err)
	}
	return selects, nil
}

// resetBy returns the Rollout that has a UID, and whether this instance acts for it; nil if
// it does not exist. One that another instance acts for
// has only its name, labels and selector.
func (r *Reconciler) resetBy(ctx context.Context, uid types.UID) (rollout *v1alpha1.Rollout, isOwn bool, err error) {
	if rollout, err = rolloutOf(ctx, r.Client, uid); rollout != nil || err != nil || r.Shard.AllRollouts == nil {
		return rollout, true, err
	}
	rollout, err = rolloutOf(ctx, r.Shard.AllRollouts, uid)
	if rollout != nil && r.Shard.Handles(rollout) {
		return nil, false, nil // the own cache does not show it yet
	}
	return rollout, false, err
}

// rolloutOf returns the Rollout that has a UID; nil if there is none.
func rolloutOf(ctx context.Context, c client.Reader, uid types.UID) (*v1alpha1.Rollout, error) {
	list := &v1alpha1.RolloutList{}
	err := c.List(ctx, list, client.MatchingFields{indexUID: string(uid)}, client.UnsafeDisableDeepCopy, unreadable.Left{})
	switch {
	case err != nil:
		return nil, fmt.Errorf("find the Rollout that has reset a HealthCheck: %w", err)
	case len(list.Items) == 0:
		return nil, nil
	}
	return &list.Items[0], nil
}

func (s *subject) add(rollout *v1alpha1.Rollout, check *v1alpha1.HealthCheck) {
	s.count++
	of := activity.None
	switch {
	case evidence.Awaits(rollout, check):
		of = activity.Running
	case evidence.Resets(rollout, check):
		of = activity.Resetting
	}
	if s.rollout == nil || isNearer(of, s.promotion) {
		s.rollout, s.promotion = rollout, of
	}
}

// isNearer reports whether a promotion rather needs measurements than another one.
func isNearer(a, b activity.Promotion) bool {
	return a == activity.Running && b != activity.Running || a == activity.Resetting && b == activity.None
}

func (s *subject) addElsewhere(rollout *v1alpha1.Rollout) {
	s.count++
	s.elsewhere = rollout.Namespace + "/" + rollout.Name
}

// entry returns the current promotion of the Rollout; nil if there is none.
func (s *subject) entry() *v1alpha1.DeploymentHistoryEntry {
	if s.rollout == nil {
		return nil
	}
	return s.rollout.Current()
}

// lastGood returns the newest release below the current entry of a history that succeeded,
// and when it was first left. Both are empty if there is none. A release that
// failed since is not a measure of what follows it.
func lastGood(history []v1alpha1.DeploymentHistoryEntry) (release v1alpha1.VersionInfo, leftAt time.Time) {
	for i := 1; i < len(history); i++ {
		if history[i].State() == v1alpha1.BakeSucceeded {
			return history[i].Version, history[i-1].PromotedTime()
		}
	}
	return v1alpha1.VersionInfo{}, time.Time{}
}
