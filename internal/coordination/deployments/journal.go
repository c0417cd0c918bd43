// SPDX-License-Identifier: Apache-2.0

package deployments

import coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"

// journals returns the next statuses of all coordinations.
func (n *namespace) journals() []Journal {
	journals := make([]Journal, len(n.groups))
	for i, g := range n.groups {
		journals[i] = n.journal(g)
	}
	return journals
}

// journal returns the next status of a coordination, and the events to emit once it is
// stored.
func (n *namespace) journal(g *group) Journal {
	status := g.Journal.DeepCopy()
	status.ObservedGeneration = g.Generation
	if !n.isStopped() {
		g.write(status)
		g.warnIdle()
	}
	status.Conditions = g.conditions(n)
	return Journal{Coordination: g.Name, Component: g.component.name(), Status: *status, Notes: g.notes}
}

// write records which members have a turn and the progress of every member.
func (g *group) write(status *coordinationv1.DeploymentCoordinationStatus) {
	status.ActiveDeployment, status.ActiveDeployments = "", keys(g.active)
	if len(g.active) > 0 {
		status.ActiveDeployment = g.active[0].Key
	}
	status.Deployments, status.DeploymentStates = nil, nil
	for _, m := range g.members {
		status.Deployments = append(status.Deployments, m.Key)
		status.DeploymentStates = append(status.DeploymentStates, m.entry())
	}
}

// keys returns the names of members as a journal has them.
func keys(members []*member) []string {
	var all []string
	for _, m := range members {
		all = append(all, m.Key)
	}
	return all
}

// entry returns the next journal entry of the member. A member that a user has paused by
// annotation is not pending unless it has the turn.
func (m *member) entry() coordinationv1.DeploymentState {
	s := *m.state.DeepCopy()
	s.Generation = m.Generation
	s.ReadyTemplates = m.readyTemplates()
	s.HasPendingChanges = m.outdated && (m.hasTurn() || !m.UserPaused)
	return s
}
