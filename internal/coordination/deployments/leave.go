// SPDX-License-Identifier: Apache-2.0

package deployments

import "slices"

// leftovers are what to do to Deployments that no coordination selects: those that
// were held get back what they would have without, and what somebody holds by
// annotation stays paused.
//
// While the selector of a coordination is a mistake, nobody knows which Deployments
// it means. Those that it had stay as they are until the mistake is corrected. The
// first implementation of this API, which took an empty selector for the whole
// namespace, left no held-by on what it paused: it is added, so that the Deployment
// is released when the coordination is deleted.
func (n *namespace) leftovers() []Write {
	var writes []Write
	for _, m := range n.strays {
		switch g := n.claimant(m); {
		case g == nil && m.HeldBy != "":
			writes = append(writes, m.giveBack())
		case g != nil && m.Paused && m.HeldBy == "":
			mark := m.mark(g.Name)
			mark.Coordinations = []string{g.Name}
			writes = append(writes, mark)
		}
	}
	return writes
}

func (m *member) giveBack() Write {
	return Write{Kind: WriteGiveBack, Deployment: m.Key, UID: m.UID, Paused: m.Paused && m.UserHeld}
}

// claimant is a coordination with a problem that had the Deployment before: its
// name is in held-by, or the Deployment is in its journal. It is nil if there is
// none.
func (n *namespace) claimant(m *member) *group {
	for _, g := range n.groups {
		if g.problem != nil && (g.Name == m.HeldBy || g.had(m)) {
			return g
		}
	}
	return nil
}

// had reports whether the coordination selected the Deployment when it was last
// understood.
func (g *group) had(m *member) bool {
	return slices.Contains(g.Journal.Deployments, m.Key) && !g.knewAnother(m)
}
