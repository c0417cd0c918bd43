// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestPendingRequests(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC))
	since := func(annotation string) *metav1.Time {
		if annotation == v1alpha1.BypassGatesAnnotation {
			return &at
		}
		return nil
	}
	asking := func() *fixture.RolloutBuilder {
		return fixture.MakeRollout("shop").Annotate(v1alpha1.BypassGatesAnnotation, "1.5.0").Annotate(v1alpha1.DeployUserAnnotation, "alice")
	}
	refused := func(r *v1alpha1.Rollout) *v1alpha1.Rollout {
		r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.RequestAcceptedCondition, Status: metav1.ConditionFalse, Message: "it needs a reason"}}
		return r
	}
	past := Pending{Text: "let 1.5.0 past gates and schedules", By: "alice", Since: &at, Verb: "promote", Args: []string{"--past-gates", "--withdraw"}}
	pastRefused := past
	pastRefused.Refused = "it needs a reason"
	for name, c := range map[string]struct {
		rollout *v1alpha1.Rollout
		want    []Pending
	}{
		"none":             {fixture.MakeRollout("shop").Annotate(v1alpha1.DeployUserAnnotation, "alice").Obj(), nil},
		"one that waits":   {asking().Obj(), []Pending{past}},
		"one refused":      {refused(asking().Obj()), []Pending{pastRefused}},
		"refused and gone": {refused(fixture.MakeRollout("shop").Obj()), []Pending{{Refused: "it needs a reason"}}},
		"two": {asking().Annotate(v1alpha1.UnblockFailedAnnotation, "true").Obj(), []Pending{
			past, {Text: "let the next release go although the current one failed", Verb: "unblock", Args: []string{"--withdraw"}},
		}},
	} {
		if diff := cmp.Diff(c.want, PendingOf(c.rollout, since)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}
