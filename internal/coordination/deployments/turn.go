// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/internal/coordination"
)

// phase is the phase of a component's turn.
type phase string

const (
	// vacant means that no Deployment has the turn.
	vacant phase = "Vacant"
	// activating means that the active Deployment is still paused.
	activating phase = "Activating"
	// rolling means that it is unpaused and not rolled out.
	rolling phase = "Rolling"
	// baking means that it is rolled out, and minReadySeconds are not over.
	baking phase = "Baking"
	// done means that minReadySeconds are over, and it is still rolled out.
	done phase = "Done"
	// failed means that Kubernetes has given up its rollout, or that it broke afterwards.
	// It keeps the turn.
	failed phase = "Failed"
	// held means that a user has paused it by annotation. It keeps the turn.
	held phase = "Held"
)

// decide determines which member has the turn.
func (c *component) decide() {
	to := c.turnHolder()
	if to == nil {
		to = c.next()
	}
	c.pass(to)
	c.recheckAt = c.active.recheckAt(c.now, c.phase)
}

// turnHolder returns the member that has the turn according to the journals and is not done;
// nil if there is none. Several may have it, because not all journals could be written or
// because their components were joined. Then the furthest one keeps it.
func (c *component) turnHolder() *member {
	var holders []*member
	for _, g := range c.groups {
		m := g.active
		switch {
		case m == nil, m.superseded:
		case m.judge(c.now) == done:
			g.emit(readyNote(m))
		case !slices.Contains(holders, m):
			holders = append(holders, m)
		}
	}
	return c.furthest(holders)
}

// furthest returns the furthest of the members that have the turn; nil if there are none.
// A member that is rolled out is further than any that is not.
func (c *component) furthest(holders []*member) *member {
	for _, m := range holders {
		if m.RolledOut {
			return m
		}
	}
	return c.first(holders)
}

// next returns the member that gets the turn when none has it; nil if none waits for it. A
// coordination whose selector is a mistake gives no turn, except to a member that rolls out
// already.
func (c *component) next() *member {
	var waiting []*member
	for _, m := range c.members {
		if m.pending() && (!m.Paused || m.mistake() == nil) {
			waiting = append(waiting, m)
		}
	}
	return c.first(waiting)
}

// first returns the first of some members in the order of turns; nil if there are none.
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

// pass is the one place where the turn changes hands: a member gets it, or no member
// does. A member that has it already keeps its times.
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

// resume finds the member that has the turn according to the journal. There is none if
// that Deployment was deleted, perhaps created again, or is not selected any more.
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
		g.emit(goneNote(name))
	}
}

// mistake returns a coordination of the member whose selector is a mistake; nil if there is
// none.
func (m *member) mistake() *group {
	for _, g := range m.groups {
		if g.problem != nil {
			return g
		}
	}
	return nil
}

// turn sets the member of the coordination that has the turn: none if the coordination
// does not select next.
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
		g.emit(g.clearedNote(from, next))
	case from == nil:
		g.emit(activatedNote(to))
	default:
		g.emit(changedNote(from, to), activatedNote(to))
	}
}

// judge returns the phase of a member's turn.
func (m *member) judge(now time.Time) phase {
	switch {
	case m == nil:
		return vacant
	case m.UserPaused:
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

// recheckAt returns when time alone changes the phase; zero if it does not.
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
