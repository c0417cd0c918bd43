// SPDX-License-Identifier: Apache-2.0

package deployments

import "slices"

// leftovers returns the writes to Deployments that no coordination selects: those with
// held-by get back the state that they would have without the controller. A Deployment
// that a user has paused by annotation stays paused.
//
// While the selector of a coordination is a mistake, it is unknown which Deployments it
// means. The Deployments that it had stay as they are until the mistake is corrected. The
// first implementation of this API took an empty selector for the whole namespace, and
// set no held-by on the Deployments that it paused. The annotation is added, and so they
// are unpaused when the coordination is deleted.
func (n *namespace) leftovers() []Write {
	var writes []Write
	for _, m := range n.strays {
		switch g := n.claimant(m); {
		case g == nil && m.HeldBy != "":
			writes = append(writes, m.restore())
		case g != nil && m.Paused && m.HeldBy == "":
			mark := m.mark(g.Name)
			mark.Coordinations = []string{g.Name}
			writes = append(writes, mark)
		}
	}
	return writes
}

func (m *member) restore() Write {
	return Write{Kind: WriteRestore, Deployment: m.Key, UID: m.UID, Paused: m.Paused && m.UserPaused}
}

// claimant returns a coordination with a problem that had the Deployment before: its name
// is in held-by, or the Deployment is in its journal. It returns nil if there is none.
func (n *namespace) claimant(m *member) *group {
	for _, g := range n.groups {
		if g.problem != nil && (g.Name == m.HeldBy || g.had(m)) {
			return g
		}
	}
	return nil
}

// had reports whether the coordination selected the Deployment when its selector was last
// valid.
func (g *group) had(m *member) bool {
	return slices.Contains(g.Journal.Deployments, m.Key) && !g.knewAnother(m)
}
