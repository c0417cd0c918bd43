// SPDX-License-Identifier: Apache-2.0

package deployments

// needsRollout reports whether the template is not fully rolled out. A change of
// replicas and a Pod that fails do not make it so.
func (m *member) needsRollout() bool {
	return !m.complete() && (!m.TemplateHasSet || m.OthersUp || m.Unfinished && !m.wasDone() || m.begun())
}

// wasDone reports whether the journal has this template as one that needs no rollout.
// Kubernetes begins to speak of progress again, and at its deadline of a timeout, when
// a Deployment of which a Pod is not ready is unpaused. That is no new template. While
// Pods of the template are still to come it is not done, whatever the journal says.
func (m *member) wasDone() bool {
	return m.known && m.state.Template == m.Template && !m.state.HasPendingChanges && !m.unfinished() && m.UpdatedReplicas >= m.Replicas
}

// complete reports whether the rollout is. A member that has the turn must be
// released for that; the Pods of another one, which was stopped in its first
// rollout, come up all the same.
func (m *member) complete() bool {
	return m.RolledOut || !m.hasTurn() && m.allUp()
}

// allUp reports whether all replicas that are wanted have the template and are
// available, and no others are wanted.
func (m *member) allUp() bool {
	return m.TemplateHasSet && !m.OthersUp && m.ObservedGeneration >= m.Generation &&
		m.UpdatedReplicas == m.Replicas && m.AvailableReplicas == m.Replicas
}

// begun reports whether the journal has this template as one that is to be rolled
// out, and has not seen it done. It is what is left to tell of a first rollout that
// was stopped: there is no older ReplicaSet.
func (m *member) begun() bool {
	return m.state.Template == m.Template && (m.state.HasPendingChanges || m.unfinished())
}

// unfinished reports whether its last turn ended without the rollout being complete.
func (m *member) unfinished() bool {
	return later(m.state.LastRolloutStarted, m.state.LastRolloutFinished)
}

// pending reports whether the member waits for its turn or has it. One that
// somebody holds waits for nobody.
func (m *member) pending() bool { return m.outdated && !m.UserHeld }

// halfway reports whether the rollout has begun and is not complete.
func (m *member) halfway() bool {
	switch {
	case !m.outdated:
		return false
	case !m.Paused:
		return true
	case m.begun() && m.unfinished():
		return true
	}
	return m.TemplateHasSet && m.OthersUp && m.progress() > 0
}

// progress is how many replicas have the template. What Kubernetes says of an
// earlier generation is about another template.
func (m *member) progress() int32 {
	if m.ObservedGeneration < m.Generation {
		return 0
	}
	return m.UpdatedReplicas
}
