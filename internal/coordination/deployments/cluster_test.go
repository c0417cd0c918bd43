// SPDX-License-Identifier: Apache-2.0

package deployments_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/coordination/deployments"
)

// cluster is a small model of a namespace: the stored objects, the behavior of the
// Deployment controller, and the effect of admission on writes.
type cluster struct {
	t        *testing.T
	now      time.Time
	version  int
	apps     map[string]*app
	crs      map[string]*cr
	holdForm string // how admission pauses a change: "", "policy", which is exact, or "webhook", which may be stale
	uids     int
}

// app is a stored Deployment with its ReplicaSets.
type app struct {
	deployments.Deployment
	version int
	sets    []replicaSet
	// reason is the reason of the condition Progressing.
	reason     string
	progressAt time.Time
	// held is the template with which the controller has paused it; empty if it has not,
	// or has forgotten.
	held string
	// broken means that the template has Pods that never get ready.
	broken bool
	// blinks is how many Pods are not ready for a moment.
	blinks int32
	// finished is the template that was last rolled out completely, and ready is since
	// when the app has been ready with it.
	finished string
	ready    time.Time
	// before is the previous value of ready, after a moment in which the app was not
	// ready, until a pass has stored that moment. No pass knows a moment that it missed.
	before time.Time
	// past contains the templates that were rolled out completely, and were changed since or
	// seen by a pass in which the app did not have the turn.
	past map[string]bool
	// readyReplicas is the number of replicas when a pass last saw all of them available.
	readyReplicas int32
}

type replicaSet struct {
	template          string
	wanted, available int32
}

// available is the reason of Progressing when a rollout is complete. It stays until the
// next rollout begins.
const available = "NewReplicaSetAvailable"

// cr is a stored DeploymentCoordination.
type cr struct {
	deployments.Coordination
	// stored is the journal as text.
	stored  string
	version int
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return &cluster{t: t, now: noon, apps: map[string]*app{}, crs: map[string]*cr{}}
}

func (c *cluster) appNames() []string { return slices.Sorted(maps.Keys(c.apps)) }
func (c *cluster) crNames() []string  { return slices.Sorted(maps.Keys(c.crs)) }

// wrote counts a write to an app. Only another spec increases the generation.
func (c *cluster) wrote(a *app, before spec) {
	c.version++
	a.version = c.version
	if a.spec() != before {
		a.Generation++
	}
}

// spec contains the fields that increase the generation when they change.
type spec struct {
	paused   bool
	template string
	replicas int32
}

func (a *app) spec() spec { return spec{a.Paused, a.Template, a.Replicas} }

// create creates a Deployment with a first template.
func (c *cluster) create(name, template string, replicas int32, labels ...string) *app {
	c.uids++
	a := &app{Deployment: deployment(name, labels...), past: map[string]bool{}}
	a.UID = types.UID(fmt.Sprint("uid-", c.uids))
	a.Generation, a.ObservedGeneration = 0, 0
	a.Template, a.Replicas = template, replicas
	a.ProgressDeadline = time.Minute
	c.apps[name] = a
	c.admit(a, true)
	c.wrote(a, spec{})
	return a
}

// up creates a Deployment that is rolled out.
func (c *cluster) up(name string, replicas int32, labels ...string) *app {
	form := c.holdForm
	c.holdForm = ""
	defer func() { c.holdForm = form }()
	a := c.create(name, "1.0", replicas, labels...)
	for range 20 {
		c.control(a)
	}
	return a
}

// coordinate creates a coordination that selects its name as a label.
func (c *cluster) coordinate(name string, change ...func(*deployments.Coordination)) *cr {
	c.version++
	r := &cr{Coordination: coordination(name, change...), version: c.version}
	c.crs[name] = r
	return r
}

// edit changes a spec as users do.
func (c *cluster) edit(a *app, change func(*app)) {
	before := a.spec()
	change(a)
	if a.Template != before.template && a.finished == before.template {
		a.past[before.template] = true
	}
	c.admit(a, a.Template != before.template)
	c.wrote(a, before)
}

// admit pauses an app that anyone but the controller has created or changed, unless it is
// active.
func (c *cluster) admit(a *app, changed bool) {
	if c.holdForm == "" || a.Paused {
		return
	}
	for _, name := range c.crNames() {
		r := c.crs[name]
		strict := r.Spec.IdlePolicy != coordinationv1.IdleResume
		if a.Labels[r.selects()] != "" && !r.allows(a, changed) && (changed || strict) {
			a.Paused, a.HeldBy = true, name
			a.PausedBy = ""
		}
	}
}

// allows reports whether the app has the turn, and for its template.
func (r *cr) allows(a *app, changed bool) bool {
	return r.Journal.HasTurn(a.Key) && !(changed && slices.ContainsFunc(r.Journal.DeploymentStates, func(s coordinationv1.DeploymentState) bool {
		return s.Name == a.Key && s.IsRolledOut()
	}))
}

// selects returns the label that the coordination selects.
func (r *cr) selects() string {
	for label := range r.Spec.LabelSelector.MatchLabels {
		return label
	}
	for _, e := range r.Spec.LabelSelector.MatchExpressions {
		if e.Operator == metav1.LabelSelectorOpExists {
			return e.Key
		}
	}
	return "nothing"
}

// control does one pass of the Deployment controller, and one step of its Pods.
func (c *cluster) control(a *app) {
	before := *a
	before.sets = slices.Clone(a.sets)
	a.ObservedGeneration = a.Generation
	if a.Paused {
		a.pause()
	} else {
		a.roll(c.now)
	}
	a.runPods()
	a.report(c.now)
	if !a.same(before) {
		c.version++
		a.version = c.version
	}
}

// same reports whether the Deployment controller has changed nothing.
func (a *app) same(b app) bool {
	return slices.Equal(a.sets, b.sets) && a.reason == b.reason && a.Failure == b.Failure && a.ObservedGeneration == b.ObservedGeneration &&
		a.UpdatedReplicas == b.UpdatedReplicas && a.AvailableReplicas == b.AvailableReplicas && a.Available == b.Available
}

// pause follows only the number of replicas, on the set that is up. The reason changes
// unless the rollout was given up.
func (a *app) pause() {
	if a.reason != "ProgressDeadlineExceeded" && a.ProgressDeadline > 0 {
		a.reason = "DeploymentPaused"
	}
	up := -1
	for i, s := range a.sets {
		if s.wanted > 0 || s.template == a.Template {
			up = i
		}
	}
	if up >= 0 {
		a.sets[up].wanted = max(0, a.sets[up].wanted+a.Replicas-a.total())
	}
}

func (a *app) total() (n int32) {
	for _, s := range a.sets {
		n += s.wanted
	}
	return n
}

func (a *app) up() (n int32) {
	for _, s := range a.sets {
		n += s.available
	}
	return n
}

// roll advances the rollout by one replica.
func (a *app) roll(now time.Time) {
	i := slices.IndexFunc(a.sets, func(s replicaSet) bool { return s.template == a.Template })
	if i < 0 {
		a.sets = append(a.sets, replicaSet{template: a.Template})
		i = len(a.sets) - 1
		a.progress(now, "NewReplicaSetCreated")
	}
	if a.reason == "DeploymentPaused" {
		a.progress(now, "DeploymentResumed")
	}
	current := &a.sets[i]
	if a.reason == available && current.wanted == a.total() { // only the number of replicas has changed
		current.wanted = a.Replicas
		return
	}
	current.wanted = min(current.wanted, a.Replicas)
	if current.wanted < a.Replicas && a.total() <= a.Replicas {
		current.wanted++
		a.progress(now, "ReplicaSetUpdated")
	}
	for j := range a.sets {
		old := &a.sets[j]
		if j != i && old.wanted > 0 && (a.up() > a.Replicas || old.available < old.wanted || current.available == a.Replicas) {
			old.wanted--
			a.progress(now, "ReplicaSetUpdated")
		}
	}
}

func (a *app) progress(now time.Time, reason string) {
	a.reason, a.progressAt = reason, now
	a.Failure = nil
}

// runPods makes the Pods of templates that are not broken ready.
func (a *app) runPods() {
	for i := range a.sets {
		s := &a.sets[i]
		s.available = min(s.wanted, s.available+1)
		if s.template == a.Template && a.broken {
			s.available = 0
		}
		if s.available > 0 && a.blinks > 0 {
			s.available = max(0, s.available-a.blinks)
		}
	}
}

// report sets the status that follows.
func (a *app) report(now time.Time) {
	a.UpdatedReplicas = 0
	for _, s := range a.sets {
		if s.template == a.Template {
			a.UpdatedReplicas = s.wanted
		}
	}
	if before := a.AvailableReplicas; a.reason == "DeploymentResumed" && a.up() > before {
		a.progress(now, "ReplicaSetUpdated") // a Pod that becomes available again is progress
	}
	a.AvailableReplicas = a.up()
	a.Available = a.AvailableReplicas >= a.Replicas-a.Replicas/4
	full := a.UpdatedReplicas == a.Replicas && a.total() == a.Replicas && a.AvailableReplicas == a.Replicas
	if full && !a.Paused && a.has(a.Template) && a.reason != available {
		a.progress(now, available)
	}
	if !full && !a.Paused && a.reason != available && a.ProgressDeadline > 0 && !now.Before(a.progressAt.Add(a.ProgressDeadline)) && a.Failure == nil {
		a.reason = "ProgressDeadlineExceeded"
		a.Failure = &deployments.Failure{Message: fmt.Sprintf("ReplicaSet %q has timed out progressing.", a.Key+"-"+a.Template), At: now.Truncate(time.Second)}
	}
	a.note(now, full)
}

// note records the real state, which may differ from the reported one.
func (a *app) note(now time.Time, full bool) {
	switch {
	case full && a.has(a.Template):
		if a.finished != a.Template {
			a.ready, a.before = time.Time{}, time.Time{}
		}
		if a.ready.IsZero() && !a.Paused {
			a.ready = now
		}
		a.finished = a.Template
	case a.finished != a.Template:
		a.ready, a.before = time.Time{}, time.Time{}
	case !a.Available && a.AvailableReplicas < min(a.readyReplicas, a.Replicas):
		if a.before.IsZero() {
			a.before = a.ready
		}
		a.ready = time.Time{}
	}
}

func (a *app) has(template string) bool {
	return slices.ContainsFunc(a.sets, func(s replicaSet) bool { return s.template == template })
}

// rolls reports whether Pods of an old template are being replaced, or the first Pods are
// being created.
func (a *app) rolls() bool { return !a.Paused && a.left() }

// left reports whether there is something to replace or to create for a new template.
func (a *app) left() bool {
	if a.finished == a.Template {
		return false
	}
	for _, s := range a.sets {
		if s.template == a.Template {
			return a.total() != s.wanted || s.wanted < a.Replicas
		}
	}
	return true
}

// facts returns the facts that the reconciler reads.
func (a *app) facts() deployments.Deployment {
	d := a.Deployment
	d.Labels = maps.Clone(a.Labels)
	d.TemplateHasSet = a.has(a.Template)
	for _, s := range a.sets {
		d.OthersUp = d.OthersUp || s.template != a.Template && s.wanted > 0
	}
	observed := a.ObservedGeneration == a.Generation
	d.Unfinished = observed && !a.Paused && !slices.Contains([]string{"", available, "DeploymentPaused", "DeploymentResumed"}, a.reason)
	d.RolledOut = observed && !a.Paused && d.TemplateHasSet && !d.OthersUp && a.UpdatedReplicas == a.Replicas && a.AvailableReplicas == a.Replicas
	return d
}

// store serializes a journal and reads it back.
func store(t *testing.T, in coordinationv1.DeploymentCoordinationStatus) (string, coordinationv1.DeploymentCoordinationStatus) {
	t.Helper()
	var out coordinationv1.DeploymentCoordinationStatus
	text, err := json.Marshal(in)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(text), out
}
