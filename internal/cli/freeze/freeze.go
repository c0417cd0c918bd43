// SPDX-License-Identifier: Apache-2.0

// Package freeze makes the objects of a freeze, which a user has asked for: a RolloutGate
// that holds one Rollout, or a schedule that holds all that it selects, until a moment or
// until it is deleted.
//
//	freeze.go  the objects, and how they are recognised
//	rules.go   the rules of a schedule that is closed until a moment
package freeze

import (
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// Manager is the value of the label [v1alpha1.ManagedByLabel] of each object of a freeze.
// Objects without it belong to others.
const Manager = "rollouts-cli"

// longest is how many bytes a reason may have: as many as a schedule copies to its gates.
const longest = 1024

// Freeze is what a user asks for.
type Freeze struct {
	// Until is when it ends, a whole minute; zero if it ends only when it is deleted.
	Until time.Time

	who, why string
	now      time.Time
	zone     *time.Location
}

// New returns a freeze that begins now. The end is rounded up to a whole minute, because
// schedules have no seconds; a zero end means that it does not end by itself. The zone is
// that of the user, for texts and names. An error says what is wrong with the reason or
// the end.
func New(why string, now, until time.Time, zone *time.Location) (Freeze, error) {
	switch {
	case why == "":
		return Freeze{}, errors.New("a freeze needs a reason")
	case len(why) > longest:
		return Freeze{}, fmt.Errorf("the reason has %d bytes, at most %d are possible", len(why), longest)
	case until.IsZero():
		return Freeze{why: why, now: now, zone: zone}, nil
	case !until.After(now):
		return Freeze{}, fmt.Errorf("a freeze until %s would be over already", until.In(zone).Format(moment))
	}
	until = wholeMinute(until)
	if until.UTC().Year() > lastYear {
		return Freeze{}, fmt.Errorf("a freeze cannot end after the year %d: leave out the end", lastYear)
	}
	return Freeze{Until: until, why: why, now: now, zone: zone}, nil
}

// moment is how the end is shown where nothing else says when that is.
const moment = "Mon 2 Jan 2006 15:04 MST"

func wholeMinute(t time.Time) time.Time {
	if whole := t.Truncate(time.Minute); !whole.Equal(t) {
		return whole.Add(time.Minute)
	}
	return t
}

// By returns the freeze with the name of the user; empty if nobody knows it.
func (f Freeze) By(user string) Freeze {
	f.who = user
	return f
}

// Gate returns the RolloutGate that holds one Rollout. A gate has no clock: the end of the
// freeze does not count.
func (f Freeze) Gate(namespace, rollout string) *v1alpha1.RolloutGate {
	return &v1alpha1.RolloutGate{
		ObjectMeta: f.metadata(namespace, "freeze-"+rollout, "Freeze"),
		Spec:       v1alpha1.RolloutGateSpec{RolloutRef: &v1alpha1.LocalObjectReference{Name: rollout}, Passing: new(false)},
	}
}

// Schedule returns the RolloutSchedule that holds the Rollouts of a namespace that the
// selector selects.
func (f Freeze) Schedule(namespace string, selector *metav1.LabelSelector) *v1alpha1.RolloutSchedule {
	return &v1alpha1.RolloutSchedule{ObjectMeta: f.metadata(namespace, f.name(), f.prettyName()), Spec: f.spec(selector)}
}

// ClusterSchedule returns the ClusterRolloutSchedule that holds the Rollouts of all
// namespaces that the selector selects.
func (f Freeze) ClusterSchedule(selector *metav1.LabelSelector) *v1alpha1.ClusterRolloutSchedule {
	return &v1alpha1.ClusterRolloutSchedule{
		ObjectMeta: f.metadata("", f.name(), f.prettyName()),
		Spec:       v1alpha1.ClusterRolloutScheduleSpec{RolloutScheduleSpec: f.spec(selector)},
	}
}

func (f Freeze) name() string { return f.now.In(f.zone).Format("freeze-20060102-1504") }

func (f Freeze) prettyName() string {
	if f.Until.IsZero() {
		return "Freeze"
	}
	return "Freeze until " + f.Until.In(f.zone).Format(moment)
}

func (f Freeze) metadata(namespace, name, prettyName string) metav1.ObjectMeta {
	description := f.why
	if f.who != "" {
		description += ", by " + f.who
	}
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name,
		Labels:      map[string]string{v1alpha1.ManagedByLabel: Manager},
		Annotations: map[string]string{v1alpha1.PrettyNameAnnotation: prettyName, v1alpha1.DescriptionAnnotation: description},
	}
}
