// SPDX-License-Identifier: Apache-2.0

package deployments_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
)

// noon is when every situation is judged, unless it says otherwise.
var noon = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)

func at(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }

// situation is an Input, and what became of it.
type situation struct {
	deployments.Input
	plan deployments.Plan
}

// of is the situation of some coordinations and Deployments at noon.
func of(things ...any) *situation {
	s := &situation{Input: deployments.Input{
		Now:      noon,
		HoldMode: deployments.Hold{Reason: coordinationv1.ControllerOnlyReason, Message: "the controller pauses after the fact"},
	}}
	for _, thing := range things {
		switch thing := thing.(type) {
		case deployments.Coordination:
			s.Coordinations = append(s.Coordinations, thing)
		case deployments.Deployment:
			s.Deployments = append(s.Deployments, thing)
		}
	}
	return s
}

// coordination selects the Deployments that carry its name as a label.
func coordination(name string, change ...func(*deployments.Coordination)) deployments.Coordination {
	c := deployments.Coordination{Name: name, Generation: 1}
	c.Spec.LabelSelector.MatchLabels = map[string]string{name: "yes"}
	c.Journal.ObservedGeneration = -1
	for _, f := range change {
		f(&c)
	}
	return c
}

// deployment is one of three replicas that is rolled out, and is not paused. The
// coordinations that are named select it.
func deployment(name string, coordinations ...string) deployments.Deployment {
	d := deployments.Deployment{
		Key: "shop/" + name, UID: types.UID("uid-" + name), Labels: map[string]string{},
		Generation: 1, ObservedGeneration: 1,
		Template: "t1", TemplateHasSet: true, RolledOut: true, Available: true,
		Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3,
		ProgressDeadline: 10 * time.Minute,
	}
	for _, c := range coordinations {
		d.Labels[c] = "yes"
	}
	return d
}

// decide plans the situation.
func (s *situation) decide() deployments.Plan {
	s.plan = deployments.Decide(s.Input)
	return s.plan
}

// journal that the plan has for a coordination.
func journalOf(t *testing.T, p deployments.Plan, name string) deployments.Journal {
	t.Helper()
	i := slices.IndexFunc(p.Journals, func(j deployments.Journal) bool { return j.Coordination == name })
	if i < 0 {
		t.Fatalf("no journal of %s", name)
	}
	return p.Journals[i]
}
