// SPDX-License-Identifier: Apache-2.0

package statefulsets

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
)

// State is the state of a group.
type State string

const (
	// Done means that every pod is up to date and available.
	Done State = "Done"
	// Waiting means that every pod is up to date, and some are not available.
	Waiting State = "Waiting"
	// Rolling means that pods of one set are being replaced.
	Rolling State = "Rolling"
	// Blocked means that pods are outdated, and none may be replaced now.
	Blocked State = "Blocked"
	// Invalid means that the pods of the group may not be replaced at all.
	Invalid State = "Invalid"
)

// Plan contains what to do in a group now.
type Plan struct {
	// State is the state of the group.
	State State
	// Reason and Message explain a state that is Blocked or Invalid.
	Reason, Message string
	// About are the sets on which Reason and Message are reported. There are none if the
	// state lasts only a moment.
	About []string

	// Delete are the pods to delete, all of one set.
	Delete []Deletion
	// Starts means that these are the first pods of the set.
	Starts bool
	// Promote are sets whose current revision is set to the wanted one, because all their
	// pods have it. That finishes them.
	Promote []string
	// Finished is the set whose turn has ended, if there was nothing to promote.
	Finished string

	// Last has to be passed in the next [Group], once the plan is carried out.
	Last types.UID
	// Ends means that the turn of the set that had it is over.
	Ends bool
	// RecheckAt is when time alone may change the plan; zero means never.
	RecheckAt time.Time
	// Warnings are about mistakes in the annotations of the sets, and about a status that
	// stays old.
	Warnings []Note
}

// Acts reports whether the plan changes anything: the cluster, or which set has the turn.
// Such a plan must be made from sets and pods that were read without the cache. A cache
// shows pods that were Ready a moment ago, and time alone makes them available.
func (p Plan) Acts() bool { return len(p.Delete)+len(p.Promote) > 0 || p.Ends }

// Deletion is a pod to delete, to have it created again.
type Deletion struct {
	Set, Pod string
	UID      types.UID
	// From is the present revision of the pod, and To is the next one.
	From, To string
}

// Note is an event about a set.
type Note struct {
	Set string
	// Reason is one of the event reasons of the API.
	Reason string
	// Message is the message for users.
	Message string
}

// Decide returns what to do in the group now.
func Decide(g Group) Plan {
	sets := tallies(g)
	var p Plan
	if others := notOnDelete(sets); len(others) > 0 {
		p.State, p.Reason, p.Last = Invalid, rolloutgroup.NotOnDeleteReason, g.Last
		p.About, p.Message = names(others), strategies(others)
	} else {
		p.choose(sets)
		p.finish(sets)
	}
	p.Ends = g.Last != "" && p.Last != g.Last
	p.RecheckAt = recheckAt(sets, g.Now)
	p.Warnings = warnings(sets, g.Now)
	return p
}

// choose looks for pods to replace.
func (p *Plan) choose(sets []*tally) {
	next := turn(sets)
	if next == nil {
		p.rest(sets)
		return
	}
	obstacles := inTheWay(sets, next)
	if len(obstacles) == 0 {
		p.roll(next)
		return
	}
	if stuck := rescue(sets); stuck != nil {
		p.State, p.Delete = Rolling, stuck.stuckPods()
		return
	}
	p.State = Blocked
	p.Reason, p.Message = waitsFor(next, obstacles)
	if slices.ContainsFunc(obstacles, (*tally).mayLast) {
		p.About = []string{next.Name}
	}
}

// rest sets the state of a group in which nothing can be replaced.
func (p *Plan) rest(sets []*tally) {
	for _, s := range sets {
		if s.hasOutdated() && s.Paused {
			p.About = append(p.About, s.Name)
		}
		if !s.settled() {
			p.State = Waiting
		}
	}
	switch {
	case len(p.About) > 0:
		p.State = Blocked
		p.Reason, p.Message = rolloutgroup.RolloutPausedReason, paused(p.About)
	case p.State == "":
		p.State = Done
	}
}

// roll replaces pods of the set, or sets the reason why it cannot.
func (p *Plan) roll(s *tally) {
	p.State, p.Delete = Rolling, s.nextPods()
	if len(p.Delete) > 0 {
		p.Starts, p.Last = !s.halfway(), s.UID
		return
	}
	if p.Reason, p.Message = s.held(); p.Reason != "" {
		p.State, p.About = Blocked, []string{s.Name}
	}
}

// finish ends the turn of sets that are complete. It does not change a set that is
// paused.
func (p *Plan) finish(sets []*tally) {
	for _, s := range sets {
		switch {
		case s.toPromote() && s.reported():
			p.Promote = append(p.Promote, s.Name)
		case s.last && s.complete() && !s.toPromote():
			p.Finished = s.Name
		}
		if s.last && !s.over() && p.Last == "" {
			p.Last = s.UID
		}
	}
}

// recheckAt returns when the next pod will have been Ready for long enough, or the next old
// status is old for too long.
func recheckAt(sets []*tally, now time.Time) (next time.Time) {
	sooner := func(at time.Time) {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, s := range sets {
		sooner(s.overdueAt())
		for _, m := range s.members {
			if m.phase == soaking {
				sooner(m.availableAt)
			}
		}
	}
	return next
}
