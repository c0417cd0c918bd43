// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"cmp"
	"slices"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// writes returns the writes to all Deployments: those that pause come before those that
// unpause.
func (n *namespace) writes() []Write {
	var writes []Write
	for _, c := range n.components {
		for _, m := range c.members {
			w := c.write(m)
			if w.Component = c.name(); w.Kind != "" {
				writes = append(writes, w)
			}
			for _, g := range m.groups {
				g.warnContested(m, w)
			}
		}
	}
	writes = append(writes, n.leftovers()...)
	slices.SortStableFunc(writes, func(a, b Write) int { return cmp.Compare(a.Kind.rank(), b.Kind.rank()) })
	return writes
}

// rank returns the position of a kind in the order of writes.
func (k WriteKind) rank() int {
	return slices.Index([]WriteKind{WritePause, WriteMark, WriteUnpause, WriteRestore}, k)
}

// write returns the write to one member; it has no kind if there is nothing to write.
func (c *component) write(m *member) Write {
	switch paused := m.wantsPaused(); {
	case paused && !m.Paused:
		return m.hold(c)
	case !paused && m.Paused:
		return m.unpause()
	case m.Paused && m.HeldBy != m.holder():
		return m.mark(m.holder())
	case !m.Paused && m.HeldBy != "":
		return m.mark("")
	}
	return Write{}
}

// wantsPaused reports whether the member has to be paused now.
func (m *member) wantsPaused() bool {
	switch {
	case m.UserPaused:
		return true
	case m.hasTurn():
		return false
	case m.outdated:
		return true
	case m.mistake() != nil:
		return m.Paused
	case m.keepsUnpaused():
		return false
	}
	return m.idlesPaused()
}

// idlesPaused reports whether the member is paused while it has nothing to roll out. It
// is, unless all coordinations that select it have the policy Resume.
func (m *member) idlesPaused() bool {
	return slices.ContainsFunc(m.groups, func(g *group) bool {
		return g.Spec.IdlePolicy != coordinationv1.IdleResume
	})
}

// holder returns the coordination to name in held-by: the present one if it still selects
// the member, and otherwise the first one that does.
func (m *member) holder() string {
	for _, g := range m.groups {
		if g.Name == m.HeldBy {
			return m.HeldBy
		}
	}
	return m.groups[0].Name
}

func (m *member) hold(c *component) Write {
	return Write{
		Kind: WritePause, Deployment: m.Key, UID: m.UID, HeldBy: m.holder(), Paused: true,
		Stops: m.outdated, Coordinations: m.names(),
		Done: pausedNote(c, m), Failed: pauseFailedNote(m),
	}
}

func (m *member) unpause() Write {
	return Write{
		Kind: WriteUnpause, Deployment: m.Key, UID: m.UID,
		Coordinations: m.names(),
		Done:          unpausedNote(m), Failed: unpauseFailedNote(m),
	}
}

// mark returns a write that leaves spec.paused as it is.
func (m *member) mark(heldBy string) Write {
	return Write{
		Kind: WriteMark, Deployment: m.Key, UID: m.UID, HeldBy: heldBy, Paused: m.Paused,
		Coordinations: m.names(),
		Failed:        pauseFailedNote(m),
	}
}

// names returns the names of the coordinations that select the member.
func (m *member) names() []string {
	names := make([]string, len(m.groups))
	for i, g := range m.groups {
		names[i] = g.Name
	}
	return names
}
