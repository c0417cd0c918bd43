// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/internal/coordination"
)

// phase is where the turn of a component stands.
type phase string

const (
	// vacant: nobody has the turn.
	vacant phase = "Vacant"
	// activating: the active Deployment is still paused.
	activating phase = "Activating"
	// rolling: it is released, and not rolled out.
	rolling phase = "Rolling"
	// baking: it is rolled out, and minReadySeconds are not over.
	baking phase = "Baking"
	// done: minReadySeconds are over, and it is still rolled out.
	done phase = "Done"
	// failed: Kubernetes has given its rollout up, or it broke afterwards. It keeps the
	// turn.
	failed phase = "Failed"
	// held: somebody holds it by annotation. It keeps the turn.
	held phase = "Held"
)

// decide finds out whose turn it is.
func (c *component) decide() {
	to := c.keeper()
	if to == nil {
		to = c.next()
	}
	c.pass(to)
	c.recheckAt = c.active.recheckAt(c.now, c.phase)
}

// keeper is who has the turn according to the journals and is not done with it;
// nil if there is none. If several have it, because not all journals could be
// written or because their components were joined, the furthest along keeps it.
func (c *component) keeper() *member {
	var holders []*member
	for _, g := range c.groups {
		m := g.active
		switch {
		case m == nil, m.superseded:
		case m.judge(c.now) == done:
			g.tell(readyNote(m))
		case !slices.Contains(holders, m):
			holders = append(holders, m)
		}
	}
	return c.furthest(holders)
}

// furthest of those that have the turn; nil if there are none. One that is rolled
// out is further than any that is not.
func (c *component) furthest(holders []*member) *member {
	for _, m := range holders {
		if m.RolledOut {
			return m
		}
	}
	return c.first(holders)
}

// next is who begins when nobody has the turn; nil if nobody waits for it.
func (c *component) next() *member {
	var waiting []*member
	for _, m := range c.members {
		if m.pending() {
			waiting = append(waiting, m)
		}
	}
	return c.first(waiting)
}

// first of some members in the order of turns; nil if there are none.
func (c *component) first(members []*member) *member {
	since := c.busySince()
	places := make([]coordination.Member, len(members))
	for i, m := range members {
		places[i] = m.place(since)
	}
	first, found := coordination.Next(places)
	if !found {
		return nil
	}
	return members[slices.Index(places, first)]
}

// pass is the one place where the turn changes hands: it goes to a member, or to
// nobody. A member that has it already keeps its times.
func (c *component) pass(to *member) {
	if to != nil && (!to.hasTurn() || to.superseded) {
		to.begin(c.now)
	}
	for _, g := range c.groups {
		g.turn(to)
	}
	c.active, c.phase = to, to.judge(c.now)
}

// hasTurn reports whether a coordination has given the member the turn.
func (m *member) hasTurn() bool {
	return slices.ContainsFunc(m.groups, func(g *group) bool { return g.active == m })
}

// resume finds the member that has the turn according to the journal. There is
// none if that Deployment is gone: it was deleted, perhaps created anew, or is not
// selected any more.
func (g *group) resume() {
	name := g.Journal.ActiveDeployment
	for _, m := range g.members {
		if m.Key == name && !g.knewAnother(m) {
			g.active = m
			return
		}
	}
	if name != "" {
		g.turned = true
		g.tell(goneNote(name))
	}
}

// turn tells the coordination who has the turn next: nobody of its own if it does
// not select that member.
func (g *group) turn(next *member) {
	from, to := g.active, next
	if !g.selects(to) {
		to = nil
	}
	if from == to {
		return
	}
	g.active, g.turned = to, true
	switch {
	case to == nil:
		g.tell(clearedNote(from, next))
	case from == nil:
		g.tell(activatedNote(to))
	default:
		g.tell(changedNote(from, to), activatedNote(to))
	}
}

// judge says where the turn of a member stands.
func (m *member) judge(now time.Time) phase {
	switch {
	case m == nil:
		return vacant
	case m.UserHeld:
		return held
	case m.Paused:
		return activating
	case m.RolledOut && m.state.ReadySince != nil:
		return m.judgeBake(now)
	case m.hasFailed(now):
		return failed
	}
	return rolling
}

// recheckAt is when time alone changes the phase; zero if it does not.
func (m *member) recheckAt(now time.Time, p phase) time.Time {
	switch p {
	case baking:
		return m.bakeEnd()
	case rolling:
		return earliest(m.givenUpAt(now), m.breakdown())
	default:
		return time.Time{}
	}
}
