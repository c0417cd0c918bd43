// SPDX-License-Identifier: Apache-2.0

package deployments

import coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"

// journals are the next statuses of all coordinations.
func (n *namespace) journals() []Journal {
	journals := make([]Journal, len(n.groups))
	for i, g := range n.groups {
		journals[i] = n.journal(g)
	}
	return journals
}

// journal is the next status of a coordination, and what to tell once it is
// stored. One with a problem remembers what it knew before: when the mistake is
// corrected, the turn goes on.
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

// forgetReady: nobody looks whether the members stay available, so that a bake begins
// anew afterwards, and so does the time for which replicas are missing.
func forgetReady(status *coordinationv1.DeploymentCoordinationStatus) {
	for i := range status.DeploymentStates {
		status.DeploymentStates[i].ReadySince, status.DeploymentStates[i].UnavailableSince = nil, nil
	}
}

// write puts down who has the turn and how far everybody is.
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

// entry is what the journals will know of the member. One that somebody holds is
// not pending unless it has the turn.
func (m *member) entry(active bool) coordinationv1.DeploymentState {
	s := *m.state.DeepCopy()
	s.Generation = m.Generation
	s.HasPendingChanges = m.outdated && (active || !m.UserHeld)
	return s
}
