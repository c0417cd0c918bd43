// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
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
	if err = errors.Join(err, g.gatherSchedules(ctx, s), g.gatherClusterGates(ctx, s)); err != nil {
		s.Gates.Problem = &verdict.Problem{
			Reason: v1alpha1.GateListFailedReason, Message: "gates or schedules could not be read" + unreadable.Why(err),
		}
	}
	return err
}

// gatherSchedules evaluates the schedules that select the Rollout. Their state counts,
// not that of their gates: a gate may be missing or outdated. Nor does the gate that the Rollout
// owns count, which mirrors other holds, or one that a schedule left behind. A gate whose
// schedule selects the Rollout no more counts like any other until it is removed.
func (g Gatherer) gatherSchedules(ctx context.Context, s *Snapshot) error {
	all, err := g.schedulesAround(ctx, s.Rollout)
	if err != nil {
		return err
	}
	selecting, err := g.selecting(ctx, s.Rollout, all)
	open := map[types.UID]bool{}
	for _, schedule := range selecting {
		window := g.Windows.of(schedule, s.Now)
		s.Gates.Schedules = append(s.Gates.Schedules, window)
		open[schedule.GetUID()] = window.Open
	}
	gates := s.Gates.Gates
	s.Gates.Gates = nil
	for i, gate := range gates {
		owner := OwnerOf(&gate)
		passing, ok := open[owner]
		switch {
		case isMirror(&gate, s.Rollout):
			s.Gates.Mirror = &gates[i]
		case ok && owner != "": // in a file, objects have no UID
			gate.Spec.Passing, gate.Spec.AllowedVersions = &passing, nil
			s.Gates.Copies = append(s.Gates.Copies, gate)
		case !isLeftBehind(&gate, all):
			s.Gates.Gates = append(s.Gates.Gates, gate)
		case slices.Contains(g.UnreadSchedules, gate.Labels[v1alpha1.ScheduleKindLabel]):
			s.Gates.Schedules = append(s.Gates.Schedules, shownBy(&gate))
			s.Gates.Copies = append(s.Gates.Copies, gate)
		}
	}
	return err
}

// ScheduleGatePrefix is the prefix of the name of each gate of a schedule.
const ScheduleGatePrefix = "schedule-gate-"

// IsOfSchedule reports whether the name and the labels of a gate are those of a schedule's.
func IsOfSchedule(gate client.Object) bool {
	labels := gate.GetLabels()
	kind := labels[v1alpha1.ScheduleKindLabel]
	return strings.HasPrefix(gate.GetName(), ScheduleGatePrefix) && labels[v1alpha1.ScheduleNameLabel] != "" &&
		(kind == scheduleKind || kind == clusterScheduleKind)
}

// isLeftBehind reports whether no schedule owns the gate of one: its schedule was deleted with
// --cascade=orphan, or was restored as another object, or the garbage collector is late.
func isLeftBehind(gate *v1alpha1.RolloutGate, schedules []Schedule) bool {
	owner := OwnerOf(gate)
	return IsOfSchedule(gate) && !slices.ContainsFunc(schedules, func(s Schedule) bool {
		return owner != "" && s.GetUID() == owner && s.GetDeletionTimestamp().IsZero()
	})
}

// shownBy returns the state of a schedule as its gate shows it: not why, nor until when.
func shownBy(gate *v1alpha1.RolloutGate) promotion.Window {
	state := "closed"
	if gate.IsPassing() {
		state = "open"
	}
	return promotion.Window{
		Schedule: gate.Labels[v1alpha1.ScheduleKindLabel] + " " + gate.Labels[v1alpha1.ScheduleNameLabel],
		Open:     gate.IsPassing(), Message: fmt.Sprintf("%s, as RolloutGate %s shows", state, gate.Name),
	}
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
	all, err := g.schedulesAround(ctx, rollout)
	if err != nil {
		return nil, err
	}
	return g.selecting(ctx, rollout, all)
}

// schedulesAround returns all schedules that could select a Rollout.
func (g Gatherer) schedulesAround(ctx context.Context, rollout *v1alpha1.Rollout) ([]Schedule, error) {
	own, err := SchedulesIn(ctx, g.Client, rollout.Namespace)
	if err != nil {
		return nil, err
	}
	cluster, err := ClusterSchedules(ctx, g.Client)
	if err != nil {
		return nil, err
	}
	return append(own, cluster...), nil
}

// selecting returns those of the schedules that select a Rollout, sorted.
func (g Gatherer) selecting(ctx context.Context, rollout *v1alpha1.Rollout, all []Schedule) ([]Schedule, error) {
	var selecting []Schedule
	for _, schedule := range all {
		if !schedule.GetDeletionTimestamp().IsZero() || !schedule.SelectsRollout(rollout) {
			continue
		}
		inNamespace, err := g.selectsNamespace(ctx, schedule.Namespaces, rollout.Namespace)
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

// selectsNamespace reports whether a selector selects a namespace; nil selects all. It reads
// the namespace only if that depends on its labels.
func (g Gatherer) selectsNamespace(ctx context.Context, selector *metav1.LabelSelector, name string) (bool, error) {
	if selector == nil {
		return true, nil
	}
	labels, err := namespaceLabels(ctx, g.Client, name)
	if err != nil {
		return false, err
	}
	return selects(selector, labels), nil
}
