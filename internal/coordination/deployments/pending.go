// SPDX-License-Identifier: Apache-2.0

package deployments

// needsRollout reports whether the template is not fully rolled out. A change of
// replicas, or a Pod that fails, does not matter.
func (m *member) needsRollout() bool {
	return !m.complete() && (!m.TemplateHasSet || m.OthersUp || m.Unfinished && !m.wasDone() || m.begun())
}

// wasDone reports whether, according to the journal, this template needs no rollout. When
// a Deployment with a Pod that is not ready is unpaused, Kubernetes reports progress
// again, and a timeout at its deadline. That is not a new template. While Pods of the
// template are still to come, it is not done, whatever the journal has.
func (m *member) wasDone() bool {
	return m.known && m.state.Template == m.Template && !m.state.HasPendingChanges && !m.unfinished() && m.UpdatedReplicas >= m.Replicas
}

// complete reports whether the rollout is complete. A member that has the turn must be
// unpaused for that. The Pods of another member, which was paused in its first rollout,
// come up in any case.
func (m *member) complete() bool {
	return m.RolledOut || !m.hasTurn() && m.allUp()
}

// allUp reports whether all wanted replicas have the template and are available, and no
// others are wanted.
func (m *member) allUp() bool {
	return m.TemplateHasSet && !m.OthersUp && m.ObservedGeneration >= m.Generation &&
		m.UpdatedReplicas == m.Replicas && m.AvailableReplicas == m.Replicas
}

// begun reports whether, according to the journal, this template has to be rolled out and
// is not done. A first rollout that was stopped shows only in the journal, because there
// is no older ReplicaSet.
func (m *member) begun() bool {
	return m.state.Template == m.Template && (m.state.HasPendingChanges || m.unfinished())
}

// unfinished reports whether its last turn ended without a complete rollout.
func (m *member) unfinished() bool {
	return later(m.state.LastRolloutStarted, m.state.LastRolloutFinished)
}

// pending reports whether the member waits for its turn or has it. A member that a user
// has paused by annotation does not wait.
func (m *member) pending() bool { return m.outdated && !m.UserPaused }

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

// progress returns how many replicas have the template. The status of an earlier
// generation is about another template.
func (m *member) progress() int32 {
	if m.ObservedGeneration < m.Generation {
		return 0
	}
	return m.UpdatedReplicas
}
