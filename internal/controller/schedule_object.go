// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/schedule"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// Kinds of schedules, as shown in messages.
const (
	scheduleKind        = "RolloutSchedule"
	clusterScheduleKind = "ClusterRolloutSchedule"
)

// scheduleObject contains what a RolloutSchedule and a ClusterRolloutSchedule have in common.
// Spec and status are those of the object itself.
type scheduleObject struct {
	client.Object
	kind       string
	spec       *v1alpha1.RolloutScheduleSpec
	status     *v1alpha1.RolloutScheduleStatus
	namespaces *metav1.LabelSelector // of the cluster kind; nil selects all
}

func scheduleObjectOf(o client.Object) scheduleObject {
	if s, ok := o.(*v1alpha1.ClusterRolloutSchedule); ok {
		return scheduleObject{s, clusterScheduleKind, &s.Spec.RolloutScheduleSpec, &s.Status, s.Spec.NamespaceSelector}
	}
	s := o.(*v1alpha1.RolloutSchedule)
	return scheduleObject{s, scheduleKind, &s.Spec, &s.Status, nil}
}

// schedulesIn returns the schedules of a namespace, including those that cannot be read:
// what they select is known anyway.
func schedulesIn(ctx context.Context, c client.Reader, namespace string) ([]scheduleObject, error) {
	list := &v1alpha1.RolloutScheduleList{}
	if err := c.List(ctx, list, client.InNamespace(namespace), unreadable.Left{}); err != nil {
		return nil, fmt.Errorf("list RolloutSchedules: %w", err)
	}
	var all []scheduleObject
	for i := range list.Items {
		all = append(all, scheduleObjectOf(&list.Items[i]))
	}
	return all, nil
}

func clusterSchedules(ctx context.Context, c client.Reader) ([]scheduleObject, error) {
	list := &v1alpha1.ClusterRolloutScheduleList{}
	if err := c.List(ctx, list, unreadable.Left{}); err != nil {
		return nil, fmt.Errorf("list ClusterRolloutSchedules: %w", err)
	}
	var all []scheduleObject
	for i := range list.Items {
		all = append(all, scheduleObjectOf(&list.Items[i]))
	}
	return all, nil
}

// String returns the kind and name for messages.
func (t scheduleObject) String() string { return t.kind + " " + t.GetName() }

// evaluate returns whether promotions may start, or the problem that must be corrected
// first.
func (t scheduleObject) evaluate(now time.Time) (schedule.State, *promotion.Problem) {
	parsed, err := schedule.Parse(t.spec)
	if invalid := t.invalidSelector(); invalid != nil {
		err = invalid
	}
	if err != nil {
		return schedule.State{}, &promotion.Problem{Reason: v1alpha1.InvalidScheduleReason, Message: err.Error()}
	}
	return parsed.At(now), nil
}

func (t scheduleObject) invalidSelector() error {
	if _, err := metav1.LabelSelectorAsSelector(t.spec.RolloutSelector); err != nil {
		return fmt.Errorf("spec.rolloutSelector cannot be used: %w", err)
	}
	if _, err := metav1.LabelSelectorAsSelector(t.namespaces); err != nil {
		return fmt.Errorf("spec.namespaceSelector cannot be used: %w", err)
	}
	return nil
}

// window returns the state of the schedule for the Rollouts that it selects.
func (t scheduleObject) window(now time.Time) promotion.Window {
	state, problem := t.evaluate(now)
	w := promotion.Window{Schedule: t.String(), Open: state.Open, Message: state.String(), Until: state.Next}
	if problem != nil {
		w.Problem = &promotion.Problem{
			Reason: problem.Reason, Message: fmt.Sprintf("%s cannot be evaluated: %s", t, problem.Message),
		}
	}
	return w
}

// selects reports whether a selector matches. If it cannot be parsed, it matches: a
// typing error must not cancel a freeze.
func selects(selector *metav1.LabelSelector, set map[string]string) bool {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err != nil || parsed.Matches(labels.Set(set))
}
