// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/schedule"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// Kinds of schedules, as shown in messages.
const (
	scheduleKind        = "RolloutSchedule"
	clusterScheduleKind = "ClusterRolloutSchedule"
)

// Schedule contains what a RolloutSchedule and a ClusterRolloutSchedule have in common.
// Spec and Status are those of the object itself.
type Schedule struct {
	client.Object
	Kind   string
	Spec   *v1alpha1.RolloutScheduleSpec
	Status *v1alpha1.RolloutScheduleStatus
	// Namespaces is spec.namespaceSelector of the cluster kind; nil selects all.
	Namespaces *metav1.LabelSelector
}

// ScheduleOf returns a RolloutSchedule or ClusterRolloutSchedule as a Schedule. It panics
// if the object is neither.
func ScheduleOf(o client.Object) Schedule {
	if s, ok := o.(*v1alpha1.ClusterRolloutSchedule); ok {
		return Schedule{s, clusterScheduleKind, &s.Spec.RolloutScheduleSpec, &s.Status, s.Spec.NamespaceSelector}
	}
	s := o.(*v1alpha1.RolloutSchedule)
	return Schedule{s, scheduleKind, &s.Spec, &s.Status, nil}
}

// SchedulesIn returns the RolloutSchedules of a namespace, including those that cannot be
// decoded: what they select is known anyway. They belong to the cache and must not be
// changed.
func SchedulesIn(ctx context.Context, c client.Reader, namespace string) ([]Schedule, error) {
	list := &v1alpha1.RolloutScheduleList{}
	if err := c.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy, unreadable.Left{}); err != nil {
		return nil, fmt.Errorf("list RolloutSchedules: %w", err)
	}
	var all []Schedule
	for i := range list.Items {
		all = append(all, ScheduleOf(&list.Items[i]))
	}
	return all, nil
}

// ClusterSchedules returns the ClusterRolloutSchedules, including those that cannot be
// decoded. They belong to the cache and must not be changed.
func ClusterSchedules(ctx context.Context, c client.Reader) ([]Schedule, error) {
	list := &v1alpha1.ClusterRolloutScheduleList{}
	if err := c.List(ctx, list, client.UnsafeDisableDeepCopy, unreadable.Left{}); err != nil {
		return nil, fmt.Errorf("list ClusterRolloutSchedules: %w", err)
	}
	var all []Schedule
	for i := range list.Items {
		all = append(all, ScheduleOf(&list.Items[i]))
	}
	return all, nil
}

// RolloutsOfSchedule returns the Rollouts whose labels a schedule selects, whatever the labels of
// their namespace. They belong to the cache and must not be changed.
func RolloutsOfSchedule(ctx context.Context, c client.Reader, schedule Schedule) ([]*v1alpha1.Rollout, error) {
	list := &v1alpha1.RolloutList{}
	if err := c.List(ctx, list, client.InNamespace(schedule.GetNamespace()), client.UnsafeDisableDeepCopy, unreadable.Left{}); err != nil {
		return nil, fmt.Errorf("list Rollouts: %w", err)
	}
	var selected []*v1alpha1.Rollout
	for i := range list.Items {
		if rollout := &list.Items[i]; schedule.SelectsRollout(rollout) {
			selected = append(selected, rollout)
		}
	}
	return selected, nil
}

// String returns the kind and name for messages.
func (s Schedule) String() string { return s.Kind + " " + s.GetName() }

// Evaluate returns whether promotions may start, or the problem that must be corrected
// first.
func (s Schedule) Evaluate(now time.Time) (schedule.State, *verdict.Problem) {
	parsed, err := schedule.Parse(s.Spec)
	if invalid := s.invalidSelector(); invalid != nil {
		err = invalid
	}
	if err != nil {
		return schedule.State{}, &verdict.Problem{Reason: v1alpha1.InvalidScheduleReason, Message: err.Error()}
	}
	return parsed.At(now), nil
}

func (s Schedule) invalidSelector() error {
	if _, err := metav1.LabelSelectorAsSelector(s.Spec.RolloutSelector); err != nil {
		return fmt.Errorf("spec.rolloutSelector cannot be used: %w", err)
	}
	if _, err := metav1.LabelSelectorAsSelector(s.Namespaces); err != nil {
		return fmt.Errorf("spec.namespaceSelector cannot be used: %w", err)
	}
	return nil
}

// Window returns the state of the schedule for the Rollouts that it selects.
func (s Schedule) Window(now time.Time) promotion.Window {
	state, problem := s.Evaluate(now)
	w := promotion.Window{
		Schedule: s.String(), Open: state.Open, Message: state.String(), Until: state.Next,
		Description: promotion.Described(s), ManagedBy: s.GetLabels()[v1alpha1.ManagedByLabel],
	}
	if problem != nil {
		w.Problem = &verdict.Problem{
			Reason: problem.Reason, Message: fmt.Sprintf("%s cannot be evaluated: %s", s, problem.Message),
		}
	}
	return w
}

// SelectsRollout reports whether the schedule selects the labels of a Rollout.
func (s Schedule) SelectsRollout(rollout client.Object) bool {
	return selects(s.Spec.RolloutSelector, rollout.GetLabels())
}

// SelectsNamespace reports whether the schedule selects namespaces with these labels.
func (s Schedule) SelectsNamespace(labels map[string]string) bool {
	return s.Namespaces == nil || selects(s.Namespaces, labels)
}

// selects reports whether a selector matches. If it cannot be parsed, it matches: a
// typing error must not cancel a freeze.
func selects(selector *metav1.LabelSelector, set map[string]string) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err != nil || parsed.Matches(labels.Set(set))
}
