// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// component is the source of the controller's events.
const component = "rollout-controller"

// History returns the promotions of a Rollout, newest first, each as "id version state".
func History(r *v1alpha1.Rollout) []string {
	reported := []string{}
	for i := range r.Status.History {
		e := &r.Status.History[i]
		var id int64
		if e.ID != nil {
			id = *e.ID
		}
		reported = append(reported, fmt.Sprintf("%d %s %s", id, e.Version.Tag, e.State()))
	}
	return reported
}

// Condition returns a condition of a Rollout, as "Type=Status Reason: message".
func Condition(r *v1alpha1.Rollout, kind string) string {
	return ConditionOf(r.Status.Conditions, kind)
}

// ConditionOf returns one of the conditions of an object, in the same form.
func ConditionOf(conditions []metav1.Condition, kind string) string {
	c := apimeta.FindStatusCondition(conditions, kind)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s=%s %s: %s", c.Type, c.Status, c.Reason, c.Message)
}

// Events returns the events that the controller emitted about an object, oldest first, as
// "Type Reason: message". It repeats an event as often as it was emitted.
func (e *Env) Events(object client.Object) []string {
	e.T.Helper()
	gvk, err := apiutil.GVKForObject(object, e.Plane.Client().Scheme())
	if err != nil {
		e.T.Fatal(err)
	}
	events := &corev1.EventList{}
	if err := e.Plane.Client().List(e.T.Context(), events, client.InNamespace(e.Namespace)); err != nil {
		e.T.Fatal(err)
	}
	// The names of an object's events end with the time in hexadecimal digits.
	slices.SortFunc(events.Items, func(a, b corev1.Event) int { return strings.Compare(a.Name, b.Name) })
	reported := []string{}
	for i := range events.Items {
		event := &events.Items[i]
		if event.Source.Component == component && event.InvolvedObject.Kind == gvk.Kind && event.InvolvedObject.Name == object.GetName() {
			line := fmt.Sprintf("%s %s: %s", event.Type, event.Reason, event.Message)
			reported = append(reported, slices.Repeat([]string{line}, int(max(event.Count, 1)))...)
		}
	}
	return reported
}

// AwaitEvents waits for the events about an object that have a reason. The first of them can
// be later than the status that it tells of: the controller writes the status first.
func (e *Env) AwaitEvents(object client.Object, reason string) (reported []string) {
	e.T.Helper()
	Eventually(e.T, "the event "+reason, func() (bool, string) {
		events := e.Events(object)
		reported = WithReason(events, reason)
		return len(reported) > 0, strings.Join(events, "\n")
	})
	return reported
}

// WithReason returns the events with a reason.
func WithReason(events []string, reason string) []string {
	return slices.DeleteFunc(slices.Clone(events), func(e string) bool {
		return !strings.Contains(e, " "+reason+": ")
	})
}

// LogRolloutsIfFailed logs the important parts of all Rollouts of a control plane at the
// end of a test that has failed.
func LogRolloutsIfFailed(t *testing.T, plane *Plane) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		rollouts := &v1alpha1.RolloutList{}
		if err := plane.Client().List(context.Background(), rollouts); err != nil {
			t.Log(err)
		}
		for i := range rollouts.Items {
			r := &rollouts.Items[i]
			t.Logf("Rollout %s/%s:\n%s", r.Namespace, r.Name, describe(r))
		}
	})
}

// describe returns the important parts of a Rollout for the message of a failed test.
func describe(r *v1alpha1.Rollout) string {
	var text strings.Builder
	for i := range r.Status.History {
		e := &r.Status.History[i]
		fmt.Fprintf(&text, "history: %s %s", e.Version.Tag, e.State())
		if e.BakeStatusMessage != nil {
			fmt.Fprintf(&text, " (%s)", *e.BakeStatusMessage)
		}
		text.WriteString("\n")
	}
	for _, target := range r.Status.Targets {
		fmt.Fprintf(&text, "target: %+v\n", target)
	}
	for _, c := range r.Status.Conditions {
		fmt.Fprintf(&text, "condition: %s\n", Condition(r, c.Type))
	}
	if text.Len() == 0 {
		return "no status: the controller has not seen the Rollout"
	}
	return text.String()
}
