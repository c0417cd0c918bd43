// SPDX-License-Identifier: Apache-2.0

package deployments_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
)

// noon is the time of every decision.
var noon = time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)

// ago returns a time before noon, as a journal stores it.
func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(-d)} }

// of returns the input with some coordinations and Deployments at noon.
func of(things ...any) deployments.Input {
	in := deployments.Input{
		Now:      noon,
		HoldMode: deployments.AdmissionMode{Reason: coordinationv1.ControllerOnlyReason, Message: "the controller pauses after the fact"},
	}
	for _, thing := range things {
		switch thing := thing.(type) {
		case deployments.Coordination:
			in.Coordinations = append(in.Coordinations, thing)
		case deployments.Deployment:
			in.Deployments = append(in.Deployments, thing)
		}
	}
	return in
}

// coordination returns one that selects the Deployments that have its name as a label.
func coordination(name string, change ...func(*deployments.Coordination)) deployments.Coordination {
	c := deployments.Coordination{Name: name, Generation: 1}
	c.Spec.LabelSelector.MatchLabels = map[string]string{name: "yes"}
	c.Journal.ObservedGeneration = -1
	for _, f := range change {
		f(&c)
	}
	return c
}

// wrote sets a journal: the active member, none if that is empty, and the entries of
// members.
func wrote(active string, states ...coordinationv1.DeploymentState) func(*deployments.Coordination) {
	return func(c *deployments.Coordination) {
		c.Journal.ObservedGeneration = 1
		c.Journal.DeploymentStates = states
		for _, s := range states {
			c.Journal.Deployments = append(c.Journal.Deployments, s.Name)
		}
		if active != "" {
			c.Journal.ActiveDeployment = "shop/" + active
		}
		status := metav1.ConditionFalse
		if active == "" {
			status = metav1.ConditionTrue
		}
		c.Journal.Conditions = []metav1.Condition{{
			Type: coordinationv1.ReadyCondition, Status: status, Reason: "Earlier", LastTransitionTime: *ago(time.Hour),
		}}
	}
}

// state returns an entry of a journal.
func state(name, template string, change ...func(*coordinationv1.DeploymentState)) coordinationv1.DeploymentState {
	s := coordinationv1.DeploymentState{Name: "shop/" + name, UID: types.UID("uid-" + name), Template: template, Generation: 1, ReadyReplicas: 3}
	for _, f := range change {
		f(&s)
	}
	return s
}

func started(t *metav1.Time) func(*coordinationv1.DeploymentState) {
	return func(s *coordinationv1.DeploymentState) { s.LastRolloutStarted, s.HasPendingChanges = t, true }
}

func finished(t *metav1.Time) func(*coordinationv1.DeploymentState) {
	return func(s *coordinationv1.DeploymentState) {
		s.LastRolloutFinished, s.ReadySince, s.HasPendingChanges = t, t, false
	}
}

// deployment returns a Deployment with three replicas that is rolled out and not paused.
// The given coordinations select it.
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

// but returns a Deployment with some changes.
func but(d deployments.Deployment, changes ...func(*deployments.Deployment)) deployments.Deployment {
	for _, change := range changes {
		change(&d)
	}
	return d
}

// idle makes it paused, with its first coordination in held-by and nothing to roll out.
func idle(d *deployments.Deployment) {
	d.Paused, d.RolledOut = true, false
	for c := range d.Labels {
		if d.HeldBy == "" || c < d.HeldBy {
			d.HeldBy = c
		}
	}
}

// waiting makes it paused, with a template that has no ReplicaSet yet.
func waiting(d *deployments.Deployment) {
	idle(d)
	d.Template, d.TemplateHasSet, d.OthersUp, d.UpdatedReplicas = "t2", false, true, 0
}

// rolling makes it unpaused, with the given number of replicas of a new template.
func rolling(updated int32) func(*deployments.Deployment) {
	return func(d *deployments.Deployment) {
		d.Template, d.OthersUp, d.Unfinished, d.RolledOut, d.UpdatedReplicas = "t2", true, true, false, updated
	}
}

// rolled makes it rolled out with its new template.
func rolled(d *deployments.Deployment) {
	d.TemplateHasSet, d.OthersUp, d.Unfinished, d.RolledOut = true, false, false, true
}

func userHeld(d *deployments.Deployment) { d.UserPaused = true }

// summary returns a plan as a few lines: the turn and the Ready condition of each
// coordination, and every write.
func summary(p deployments.Plan) []string {
	var lines []string
	for _, j := range p.Journals {
		active := "nobody"
		if all := j.Status.Active(); len(all) > 0 {
			active = strings.ReplaceAll(strings.Join(all, " and "), "shop/", "")
		}
		lines = append(lines, fmt.Sprintf("%s: %s, %s", j.Coordination, active, ready(j.Status).Reason))
	}
	for _, w := range p.Writes {
		lines = append(lines, fmt.Sprintf("%s %s", w.Kind, strings.TrimPrefix(w.Deployment, "shop/")))
	}
	return lines
}

// check compares the summary of a plan.
func check(t *testing.T, in deployments.Input, want ...string) deployments.Plan {
	t.Helper()
	p := deployments.Decide(in)
	if got := summary(p); !slices.Equal(got, want) {
		t.Errorf("the plan is\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
	return p
}

// journalOf returns the journal of a coordination in the plan.
func journalOf(t *testing.T, p deployments.Plan, name string) deployments.Journal {
	t.Helper()
	i := slices.IndexFunc(p.Journals, func(j deployments.Journal) bool { return j.Coordination == name })
	if i < 0 {
		t.Fatalf("no journal of %s", name)
	}
	return p.Journals[i]
}

// entryOf returns the entry of a member in that journal.
func entryOf(t *testing.T, p deployments.Plan, name, member string) coordinationv1.DeploymentState {
	t.Helper()
	states := journalOf(t, p, name).Status.DeploymentStates
	i := slices.IndexFunc(states, func(s coordinationv1.DeploymentState) bool { return s.Name == "shop/"+member })
	if i < 0 {
		t.Fatalf("no entry of %s", member)
	}
	return states[i]
}
