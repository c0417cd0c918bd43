// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

const (
	// residents is how many applications stay from the beginning to the end.
	residents = 12
	// visitors is how many there are at most that come and go.
	visitors = 3
	// between is the longest time between two moves.
	between = 2 * time.Second
	// measured is how often HealthChecks ask, and baked how long releases bake: long enough
	// to be measured.
	measured, baked = 5 * time.Second, 6 * time.Second
)

// crowd are the applications, and what happens to them.
type crowd struct {
	t        *testing.T
	plane    *env.Plane
	random   *rand.Rand
	asked    string // the server that HealthChecks ask
	resident []*member
	visitor  []*member
	done     map[string]int
}

// member is an application with a Rollout.
type member struct {
	*env.Env
	crowd    *crowd
	released int // versions
	reports  int // HealthChecks that reported an error
	smokes   int // HealthChecks that asked a server
}

func gather(t *testing.T, plane *env.Plane, asked string) *crowd {
	t.Helper()
	c := &crowd{t: t, plane: plane, random: env.Random(t), asked: asked, done: map[string]int{}}
	for range residents {
		c.resident = append(c.resident, c.join())
	}
	return c
}

// join creates an application in a namespace of its own.
func (c *crowd) join() *member {
	c.t.Helper()
	m := &member{Env: env.New(c.t, c.plane), crowd: c}
	m.CreateFlux()
	m.Create(m.HealthCheck(), m.smoke(), m.Rollout(m.Baked(baked, time.Hour), goesBack))
	m.release()
	return m
}

func goesBack(spec *v1alpha1.RolloutSpec) {
	spec.Quarantine, spec.Rollback = &v1alpha1.RolloutQuarantine{}, &v1alpha1.RolloutRollback{}
}

// pause waits for a random time.
func (c *crowd) pause() { time.Sleep(time.Duration(c.random.Int64N(int64(between)))) }

// move does something at random.
func (c *crowd) move() {
	c.t.Helper()
	all := slices.Concat(c.resident, c.visitor)
	m, what := all[c.random.IntN(len(all))], moves[c.random.IntN(len(moves))]
	what.do(m)
	c.done[what.name]++
}

// moves are made at any time. What holds releases is removed more often than it is created,
// so that most of the time something goes on.
var moves = []struct {
	name string
	do   func(*member)
}{
	{"released", (*member).release},
	{"released", (*member).release},
	{"released", (*member).release},
	{"failed", (*member).fail},
	{"recovered", (*member).recover},
	{"recovered", (*member).recover},
	{"gate closed", (*member).closeGate},
	{"gates removed", (*member).openGates},
	{"gates removed", (*member).openGates},
	{"frozen", (*member).freeze},
	{"thawed", (*member).thaw},
	{"thawed", (*member).thaw},
	{"HealthChecks replaced", (*member).replaceChecks},
	{"Environment came or went", (*member).toggleEnvironment},
	{"asked", (*member).ask},
	{"visitor came", func(m *member) { m.crowd.welcome() }},
	{"visitor left", func(m *member) { m.crowd.part() }},
}

// welcome lets a visitor come, unless there are enough.
func (c *crowd) welcome() {
	if len(c.visitor) < visitors {
		c.visitor = append(c.visitor, c.join())
	}
}

// part lets a visitor leave, if there is one.
func (c *crowd) part() {
	if len(c.visitor) > 0 {
		c.visitor[0].leave()
		c.visitor = c.visitor[1:]
	}
}

// calmDown removes all that holds releases, and waits until each application runs its
// newest release.
func (c *crowd) calmDown() {
	c.t.Helper()
	for len(c.visitor) > 0 {
		c.part()
	}
	for _, m := range c.resident {
		m.calmDown()
	}
	for _, m := range c.resident {
		m.AwaitState(m.version(), v1alpha1.BakeSucceeded)
	}
}

func (m *member) version() string { return fmt.Sprintf("1.%d.0", m.released) }

// release publishes the next version.
func (m *member) release() {
	m.T.Helper()
	m.released++
	m.Publish(m.ConfigRelease(m.version()))
}

// fail lets a HealthCheck report an error, by which a release that bakes fails.
func (m *member) fail() {
	m.T.Helper()
	m.reports++
	check := m.checkNamed(fmt.Sprint("reported-", m.reports), "example")
	m.Create(check)
	m.ChangeStatus(check, func() {
		check.Status.Status, check.Status.LastErrorTime = v1alpha1.HealthStatusUnhealthy, &metav1.Time{Time: time.Now()}
	})
	m.release()
}

// recover removes all HealthChecks that people have written.
func (m *member) recover() {
	checks := &v1alpha1.HealthCheckList{}
	if err := m.Plane.Client().List(m.T.Context(), checks, client.InNamespace(m.Namespace)); err != nil {
		m.T.Fatal(err)
	}
	for i := range checks.Items {
		if check := &checks.Items[i]; *check.Spec.Class == "example" {
			m.remove(check)
		}
	}
}

// replaceChecks removes the HealthCheck that asks a server, and creates it under a new
// name.
func (m *member) replaceChecks() {
	m.remove(m.smoke())
	m.smokes++
	m.Create(m.smoke())
}

// smoke returns the HealthCheck that asks a server.
func (m *member) smoke() *v1alpha1.HealthCheck {
	check := m.checkNamed(fmt.Sprint("smoke-", m.smokes), v1alpha1.HealthCheckClassHTTP)
	check.Spec.MeasuringSpec = v1alpha1.MeasuringSpec{Interval: &metav1.Duration{Duration: measured}, Delay: &metav1.Duration{}}
	check.Spec.HTTP = &v1alpha1.HTTPSpec{URL: m.crowd.asked + "/" + m.Namespace}
	return check
}

func (m *member) checkNamed(name, class string) *v1alpha1.HealthCheck {
	check := m.HealthCheck()
	check.Name, check.Annotations, check.Spec = name, nil, v1alpha1.HealthCheckSpec{Class: &class}
	return check
}

func (m *member) closeGate() {
	passing := false
	gate := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, GenerateName: "gate-"}}
	gate.Spec.RolloutRef, gate.Spec.Passing = &v1alpha1.LocalObjectReference{Name: m.Name}, &passing
	m.Create(gate)
}

func (m *member) openGates() { m.removeAll(&v1alpha1.RolloutGate{}) }

func (m *member) freeze() {
	s := &v1alpha1.RolloutSchedule{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, GenerateName: "freeze-"}}
	s.Spec = v1alpha1.RolloutScheduleSpec{
		RolloutSelector: &metav1.LabelSelector{}, Action: v1alpha1.ScheduleDeny,
		Rules: []v1alpha1.ScheduleRule{{TimeRange: &v1alpha1.TimeRange{Start: "00:00", End: "00:00"}}},
	}
	m.Create(s)
}

func (m *member) thaw() { m.removeAll(&v1alpha1.RolloutSchedule{}) }

func (m *member) toggleEnvironment() {
	e := m.Environment("staging")
	err := m.Plane.Client().Delete(m.T.Context(), e)
	if apierrors.IsNotFound(err) {
		m.Create(m.Environment("staging"))
		return
	}
	if err != nil {
		m.T.Fatal(err)
	}
}

// ask requests something by annotation.
func (m *member) ask() {
	requests := []map[string]string{
		{v1alpha1.ForceDeployAnnotation: m.version()},
		{v1alpha1.BypassGatesAnnotation: m.version()},
		{v1alpha1.UnblockFailedAnnotation: "true"},
		{v1alpha1.ReconcileRequestAnnotation: m.version()},
	}
	rollout := m.Rollout()
	m.Change(rollout, func() { rollout.Annotations = requests[m.crowd.random.IntN(len(requests))] })
}

// calmDown removes all that holds releases, and publishes another one.
func (m *member) calmDown() {
	m.T.Helper()
	m.recover()
	m.openUp()
	rollout := m.Rollout()
	m.Change(rollout, func() { rollout.Annotations = map[string]string{v1alpha1.UnblockFailedAnnotation: "true"} })
	m.release()
}

// openUp removes all gates, schedules, Environments and quarantines.
func (m *member) openUp() {
	m.removeAll(&v1alpha1.RolloutSchedule{}, &v1alpha1.RolloutGate{}, &environmentsv1.Environment{}, &v1alpha1.ReleaseQuarantine{})
}

// leave removes all objects of the application. Nothing deletes the namespace itself here.
func (m *member) leave() {
	m.T.Helper()
	m.openUp()
	m.removeAll(&v1alpha1.Rollout{}, &v1alpha1.HealthCheck{})
	for _, o := range m.Flux("")[1:] {
		m.remove(o)
	}
}

func (m *member) remove(o client.Object) {
	m.T.Helper()
	if err := client.IgnoreNotFound(m.Plane.Client().Delete(m.T.Context(), o)); err != nil {
		m.T.Fatal(err)
	}
}

func (m *member) removeAll(kinds ...client.Object) {
	m.T.Helper()
	for _, kind := range kinds {
		if err := m.Plane.Client().DeleteAllOf(m.T.Context(), kind, client.InNamespace(m.Namespace)); err != nil {
			m.T.Fatal(err)
		}
	}
}
