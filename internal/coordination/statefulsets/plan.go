// SPDX-License-Identifier: Apache-2.0

package statefulsets

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
)

// State is where a group stands.
type State string

const (
	// Done: every pod is up to date and available.
	Done State = "Done"
	// Waiting: every pod is up to date, and some are not available.
	Waiting State = "Waiting"
	// Rolling: pods of one set are being replaced.
	Rolling State = "Rolling"
	// Blocked: pods are outdated, and none may be replaced now.
	Blocked State = "Blocked"
	// Invalid: the group is not one whose pods may be replaced.
	Invalid State = "Invalid"
)

// Plan is what to do in a group now.
type Plan struct {
	// State says where the group stands.
	State State
	// Reason and Message say why, while it is Blocked or Invalid.
	Reason, Message string
	// About are the sets that Reason and Message are told about. There are none if
	// it is a matter of moments.
	About []string

	// Delete are the pods to delete, all of one set.
	Delete []Deletion
	// Starts means that these are the first of the set.
	Starts bool
	// Promote are sets whose current revision is to become the one that they wish
	// for, since all their pods are of it. That finishes them.
	Promote []string
	// Finished is the set whose turn has ended, if there was nothing to promote.
	Finished string

	// Last is to be given with the next [Group], once the plan is carried out.
	Last types.UID
	// Ends means that the turn of the set that had it is over.
	Ends bool
	// RecheckAt is when time alone may change the plan; zero means never.
	RecheckAt time.Time
	// Warnings are about what people wrote on the sets.
	Warnings []Note
}

// Acts reports whether the plan changes anything: in the cluster, or whose turn it is.
// Such a plan must rest on sets and pods that were read past the cache. A cache shows
// pods that were Ready a moment ago, and of which time alone makes available ones.
func (p Plan) Acts() bool { return len(p.Delete)+len(p.Promote) > 0 || p.Ends }

// Deletion is a pod to delete, so that it is created anew.
type Deletion struct {
	Set, Pod string
	UID      types.UID
	// From and To are the revision that it has and the one that it will have.
	From, To string
}

// Note is an event about a set.
type Note struct {
	Set string
	// Reason is one of the event reasons of the API.
	Reason string
	// Message is for people.
	Message string
}

// Decide says what happens to the group next.
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
	p.RecheckAt = nextAvailable(sets)
	p.Warnings = warnings(sets)
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

// rest is what is said of a group in which nothing can be replaced.
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

// roll replaces pods of the set, or says what keeps it from it.
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

// finish ends the turn of sets that are complete. A set that is paused is left as
// it is.
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

// nextAvailable is when the next pod has been Ready for long enough.
func nextAvailable(sets []*tally) (next time.Time) {
	for _, s := range sets {
		for _, m := range s.members {
			if m.phase == soaking && (next.IsZero() || m.availableAt.Before(next)) {
				next = m.availableAt
			}
		}
	}
	return next
}
