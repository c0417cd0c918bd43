// SPDX-License-Identifier: Apache-2.0

package deployments

import "slices"

// giveBacks are the Deployments that were held and that no coordination selects any
// more. They get back what they would have without; what somebody holds by
// annotation stays paused.
//
// While the selector of a coordination is a mistake, nobody knows which Deployments
// it means. Those that it had stay as they are until the mistake is corrected.
func (n *namespace) giveBacks() []Write {
	var writes []Write
	for _, m := range n.strays {
		if m.HeldBy != "" && n.claimant(m) == nil {
			writes = append(writes, Write{
				Kind: WriteGiveBack, Deployment: m.Key, UID: m.UID,
				Paused: m.Paused && m.UserHeld,
			})
		}
	}
	return writes
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
