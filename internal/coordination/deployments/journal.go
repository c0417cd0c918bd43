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
// stored. A coordination with a problem keeps its journal: when the mistake is corrected,
// the turn goes on.
func (n *namespace) journal(g *group) Journal {
	status := g.Journal.DeepCopy()
	status.ObservedGeneration = g.Generation
	switch {
	case n.stands():
	case g.problem != nil:
		forgetReady(status)
	default:
		g.write(status)
		g.warnIdle()
	}
	status.Conditions = g.conditions(n)
	return Journal{Coordination: g.Name, Component: g.componentName(), Status: *status, Notes: g.notes}
}

// forgetReady drops ReadySince and UnavailableSince: the availability of the members is
// not observed. So a bake, and the time for which replicas are missing, begin again
// afterwards.
func forgetReady(status *coordinationv1.DeploymentCoordinationStatus) {
	for i := range status.DeploymentStates {
		status.DeploymentStates[i].ReadySince, status.DeploymentStates[i].UnavailableSince = nil, nil
	}
}

// write records which member has the turn and the progress of every member.
func (g *group) write(status *coordinationv1.DeploymentCoordinationStatus) {
	status.ActiveDeployment = ""
	if g.active != nil {
		status.ActiveDeployment = g.active.Key
	}
	status.Deployments, status.DeploymentStates = nil, nil
	for _, m := range g.members {
		status.Deployments = append(status.Deployments, m.Key)
		status.DeploymentStates = append(status.DeploymentStates, m.entry(m == g.active))
	}
}

// entry returns the next journal entry of the member. A member that a user has paused by
// annotation is not pending unless it has the turn.
func (m *member) entry(active bool) coordinationv1.DeploymentState {
	s := *m.state.DeepCopy()
	s.Generation = m.Generation
	s.HasPendingChanges = m.outdated && (active || !m.UserPaused)
	return s
}
