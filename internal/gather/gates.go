// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// gatherGates reads the gates that reference the Rollout and the schedules that select
// it.
func (g Gatherer) gatherGates(ctx context.Context, s *Snapshot) error {
	gates := &v1alpha1.RolloutGateList{}
	err := g.Client.List(ctx, gates, client.InNamespace(s.Rollout.Namespace),
		client.MatchingFields{gateRolloutIndex: s.Rollout.Name}, client.UnsafeDisableDeepCopy)
	slices.SortFunc(gates.Items, func(a, b v1alpha1.RolloutGate) int { return strings.Compare(a.Name, b.Name) })
	s.Gates.Gates = gates.Items
	if err = errors.Join(err, g.gatherSchedules(ctx, s)); err != nil {
		s.Gates.Problem = &promotion.Problem{
			Reason: v1alpha1.GateListFailedReason, Message: "gates or schedules could not be read" + Because(err),
		}
	}
	return err
}

// gatherSchedules evaluates the schedules that select the Rollout. Their state counts,
// not that of their gates: a gate may be missing or outdated. Nor does the gate that the Rollout
// owns count, which mirrors other holds. A gate whose schedule was
// deleted, or selects the Rollout no more, counts like any other until it is removed.
func (g Gatherer) gatherSchedules(ctx context.Context, s *Snapshot) error {
	schedules, err := g.SchedulesOf(ctx, s.Rollout)
	open := map[types.UID]bool{}
	for _, schedule := range schedules {
		window := g.Windows.of(schedule, s.Now)
		s.Gates.Schedules = append(s.Gates.Schedules, window)
		open[schedule.GetUID()] = window.Open
	}
	all := s.Gates.Gates
	s.Gates.Gates = nil
	for i, gate := range all {
		if isMirror(&gate, s.Rollout) {
			s.Gates.Mirror = &all[i]
			continue
		}
		owner := OwnerOf(&gate)
		if passing, ok := open[owner]; ok && owner != "" { // in a file, objects have no UID
			gate.Spec.Passing, gate.Spec.AllowedVersions = &passing, nil
			s.Gates.Copies = append(s.Gates.Copies, gate)
			continue
		}
		s.Gates.Gates = append(s.Gates.Gates, gate)
	}
	return err
}

// isMirror reports whether the Rollout owns the gate, or one of its name did that is gone: the
// gate may outlive that one for a moment, or for longer after a restore.
func isMirror(gate *v1alpha1.RolloutGate, rollout *v1alpha1.Rollout) bool {
	owner := metav1.GetControllerOfNoCopy(gate)
	return owner != nil && owner.Kind == v1alpha1.RolloutKind && owner.Name == rollout.Name && gate.Labels[v1alpha1.MirrorLabel] == "true"
}

// OwnerOf returns the UID of the controller of an object; empty if it has none.
func OwnerOf(o client.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		return owner.UID
	}
	return ""
}

// SchedulesOf returns the schedules that select a Rollout, sorted by kind and name. A
// schedule that is being deleted selects nothing any more.
func (g Gatherer) SchedulesOf(ctx context.Context, rollout *v1alpha1.Rollout) ([]Schedule, error) {
	own, err := SchedulesIn(ctx, g.Client, rollout.Namespace)
	if err != nil {
		return nil, err
	}
	cluster, err := ClusterSchedules(ctx, g.Client)
	if err != nil {
		return nil, err
	}
	var selecting []Schedule
	for _, schedule := range append(own, cluster...) {
		if !schedule.GetDeletionTimestamp().IsZero() || !schedule.SelectsRollout(rollout) {
			continue
		}
		inNamespace, err := g.selectsNamespace(ctx, schedule, rollout.Namespace)
		if err != nil {
			return nil, err
		}
		if !inNamespace {
			continue
		}
		if err := unreadable.Of(schedule.Object); err != nil {
			return nil, err
		}
		selecting = append(selecting, schedule)
	}
	slices.SortFunc(selecting, func(a, b Schedule) int { return strings.Compare(a.String(), b.String()) })
	return selecting, nil
}

// selectsNamespace reports whether a schedule selects a namespace. It reads the namespace
// only if that depends on its labels.
func (g Gatherer) selectsNamespace(ctx context.Context, schedule Schedule, name string) (bool, error) {
	if schedule.Namespaces == nil {
		return true, nil
	}
	labels, err := namespaceLabels(ctx, g.Client, name)
	if err != nil {
		return false, err
	}
	return schedule.SelectsNamespace(labels), nil
}
