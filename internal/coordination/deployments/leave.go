// SPDX-License-Identifier: Apache-2.0

package deployments

// leftovers returns the writes to Deployments that no coordination selects: those with
// held-by get back the state that they would have without the controller. A Deployment
// that a user has paused by annotation stays paused.
func (n *namespace) leftovers() []Write {
	var writes []Write
	for _, m := range n.strays {
		if m.HeldBy != "" {
			writes = append(writes, m.restore())
		}
	}
	return writes
}

func (m *member) restore() Write {
	return Write{Kind: WriteRestore, Deployment: m.Key, UID: m.UID, Paused: m.Paused && m.UserPaused}
}
