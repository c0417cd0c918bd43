// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"slices"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/internal/coordination"
)

// phase is the phase of a turn.
type phase string

const (
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

// decide determines which members have a turn.
func (c *component) decide() {
	to := c.turnHolders()
	if c.stoppedBy(to) == nil {
		to = append(to, c.next(to)...)
	}
	c.pass(to)
	for _, m := range c.active {
		c.recheckAt = earliest(c.recheckAt, m.recheckAt(c.now))
	}
}

// limit returns how many members may have a turn at a time: as many as the strictest
// coordination allows.
func (c *component) limit() int {
	n := len(c.members)
	for _, g := range c.groups {
		n = min(n, g.Spec.Concurrent(len(g.members)))
	}
	return n
}

// turnHolders returns the members that have a turn according to the journals and are not
// done. There may be more than are allowed, because not all journals could be written,
// because components were joined, or because fewer are allowed now. Then the furthest ones
// keep it.
func (c *component) turnHolders() []*member {
	var holders []*member
	for _, g := range c.groups {
		for _, m := range g.active {
			switch {
			case m.superseded:
			case m.judge(c.now) == done:
				g.emit(readyNote(m))
			case !slices.Contains(holders, m):
				holders = append(holders, m)
			}
		}
	}
	return c.most(c.furthest(holders))
}

// furthest sorts members that have a turn. A member that is rolled out is further than any
// that is not.
func (c *component) furthest(holders []*member) []*member {
	var rolledOut, others []*member
	for _, m := range holders {
		if m.RolledOut {
			rolledOut = append(rolledOut, m)
		} else {
			others = append(others, m)
		}
	}
	return append(rolledOut, c.inOrder(others)...)
}

// most returns the first members, as many as may have a turn.
func (c *component) most(members []*member) []*member {
	return members[:min(len(members), c.limit())]
}

// stoppedBy returns the first member that has a turn and has failed, or that a user has
// paused by annotation; nil if there is none. While there is one, no other member begins.
func (c *component) stoppedBy(holders []*member) *member {
	for _, m := range holders {
		if p := m.judge(c.now); p == failed || p == held {
			return m
		}
	}
	return nil
}

// next returns the members that get the turns that nobody has. A coordination whose
// selector is a mistake gives no turn, except to a member that rolls out already.
func (c *component) next(holders []*member) []*member {
	var waiting []*member
	for _, m := range c.members {
		if m.pending() && (!m.Paused || m.mistake() == nil) && !slices.Contains(holders, m) {
			waiting = append(waiting, m)
		}
	}
	free := c.limit() - len(holders)
	return c.inOrder(waiting)[:min(free, len(waiting))]
}

// inOrder returns some members in the order of turns.
func (c *component) inOrder(members []*member) []*member {
	since := c.busySince()
	places := make(map[*member]coordination.Member, len(members))
	for _, m := range members {
		places[m] = m.place(since)
	}
	return slices.SortedFunc(slices.Values(members), func(a, b *member) int { return coordination.Compare(places[a], places[b]) })
}

// pass is the one place where turns change hands: some members get one, and all others have
// none. A member that has one already keeps its times.
func (c *component) pass(to []*member) {
	for _, m := range to {
		if m.begins = !m.hasTurn() || m.superseded; m.begins {
			m.begin(c.now)
		}
		m.phase = m.judge(c.now)
	}
	slices.SortFunc(to, func(a, b *member) int { return strings.Compare(a.Key, b.Key) })
	c.active = to
	for _, g := range c.groups {
		g.turn()
	}
}

// hasTurn reports whether a coordination has given the member a turn.
func (m *member) hasTurn() bool {
	return slices.ContainsFunc(m.groups, func(g *group) bool { return slices.Contains(g.active, m) })
}

// resume finds the members that have a turn according to the journal. There is none for a
// Deployment that was deleted, perhaps created again, or is not selected any more.
func (g *group) resume() {
	for _, name := range g.Journal.Active() {
		i := slices.IndexFunc(g.members, func(m *member) bool { return m.Key == name && !g.knewAnother(m) })
		if i < 0 {
			g.turned = true
			g.emit(goneNote(name))
			continue
		}
		g.active = append(g.active, g.members[i])
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

// turn sets the members of the coordination that have a turn, and pairs those that lose
// theirs with those that get one.
func (g *group) turn() {
	from, to := g.active, slices.DeleteFunc(slices.Clone(g.component.active), func(m *member) bool { return !g.selects(m) })
	lost, got := without(from, to), without(to, from)
	g.active, g.turned = to, g.turned || len(lost)+len(got) > 0
	for i, m := range lost {
		if i >= len(got) {
			g.emit(g.clearedNote(m))
			continue
		}
		g.emit(changedNote(m, got[i]))
	}
	for _, m := range got {
		g.emit(activatedNote(m))
	}
}

// without returns the members of a that are not in b.
func without(a, b []*member) []*member {
	return slices.DeleteFunc(slices.Clone(a), func(m *member) bool { return slices.Contains(b, m) })
}

// judge returns the phase of a member's turn.
func (m *member) judge(now time.Time) phase {
	switch {
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
func (m *member) recheckAt(now time.Time) time.Time {
	switch m.phase {
	case baking:
		return m.bakeEnd()
	case rolling:
		return earliest(m.givenUpAt(now), m.breakdown())
	default:
		return time.Time{}
	}
}
