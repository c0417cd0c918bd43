// SPDX-License-Identifier: Apache-2.0

package deployments

// giveBacks are the Deployments that were held and that no coordination selects any
// more. They get back what they would have without; what somebody holds by
// annotation stays paused.
func (n *namespace) giveBacks() []Write {
	var writes []Write
	for _, m := range n.strays {
		if m.HeldBy != "" {
			writes = append(writes, Write{
				Kind: WriteGiveBack, Deployment: m.Key, UID: m.UID,
				Paused: m.Paused && m.UserHeld,
			})
		}
	}
	return writes
}
