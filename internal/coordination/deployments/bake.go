// SPDX-License-Identifier: Apache-2.0

package deployments

import "time"

// begin starts a rollout: the member gets the turn, or gets a new template while it has
// the turn.
func (m *member) begin(now time.Time) {
	m.state.LastRolloutStarted = stamp(now)
	m.state.ReadySince, m.state.UnavailableSince = nil, nil
	m.state.HasPendingChanges = true
	m.state.Template = m.Template
	m.outdated = true
}

// advance updates the journal entry of the member to now. A new template and the loss of
// availability end the time for which it has been ready; a change of replicas does not.
func (m *member) advance(now time.Time) {
	if m.recovered(now) {
		m.state.UnavailableSince = nil
	}
	m.outdated = m.needsRollout()
	changed := m.state.Template != m.Template
	m.superseded = changed && m.bakes()
	if m.hasTurn() && !m.superseded && (changed || m.state.LastRolloutStarted == nil) {
		m.begin(now)
	}
	if changed || m.lostAvailability() {
		m.state.ReadySince = nil
	}
	m.state.Template = m.Template
	switch {
	case m.complete():
		m.finish(now)
	case changed:
		m.forgetStart()
	}
	m.noteReadiness(now)
	m.noteBreakdown(now)
}

// forgetStart removes an unfinished start of the template before, if the present one needs
// no rollout. Otherwise the next pass would take it for a start of the present one.
func (m *member) forgetStart() {
	if !m.outdated && m.unfinished() {
		m.state.LastRolloutStarted = nil
	}
}

// noteReadiness records since when the member has been rolled out, and how many replicas
// existed when all were available: also while it is paused, because those can be lost
// too.
func (m *member) noteReadiness(now time.Time) {
	if m.allUp() {
		m.state.ReadyReplicas = m.Replicas
	}
	if m.RolledOut && m.state.ReadySince == nil {
		m.state.ReadySince = stamp(now)
	}
}

// noteBreakdown records since when the member that has the turn has not stayed available
// after its rollout was complete. A paused member has no such time, because its state is
// unknown. If Available was lost, it is not enough that it is back for a moment, as in a
// crash loop: see recovered.
func (m *member) noteBreakdown(now time.Time) {
	switch {
	case !m.hasTurn(), m.Paused, m.outdated, m.RolledOut && !m.isWell():
		m.state.UnavailableSince = nil
	case !m.RolledOut && m.state.UnavailableSince == nil:
		m.state.UnavailableSince = stamp(now)
	}
}

// recovered reports whether the member has been available again for the time that a
// rollout may make no progress.
func (m *member) recovered(now time.Time) bool {
	return m.isWell() && !now.Before(m.state.ReadySince.Add(m.ProgressDeadline))
}

// isWell reports whether, according to the journal, no replica has been missing since the
// member was ready.
func (m *member) isWell() bool {
	return m.state.ReadySince != nil && later(m.state.ReadySince, m.state.UnavailableSince)
}

// bakes reports whether, according to the journal, the member was rolled out in its turn
// and stays so. A new template then waits for another turn: otherwise a member that
// changes more often than it bakes would keep the turn for ever. Admission has the same
// rule, and stores such a member paused. A member that has not stayed available, or that a
// user has paused by annotation, keeps the turn.
func (m *member) bakes() bool {
	return m.hasTurn() && !m.RolledOut && !m.UserPaused && m.state.Template != "" && m.state.IsRolledOut()
}

// lostAvailability reports whether fewer replicas are available than before. A Deployment
// that is scaled up is not Available either until the new replicas are.
func (m *member) lostAvailability() bool {
	return !m.Available && m.AvailableReplicas < min(m.state.ReadyReplicas, m.Replicas)
}

// finish records that the rollout is complete, the first time that this is seen.
func (m *member) finish(now time.Time) {
	if m.state.HasPendingChanges || m.unfinished() {
		m.state.LastRolloutFinished = stamp(now)
	}
	m.outdated, m.state.HasPendingChanges = false, false
}

// judgeBake returns the phase of a member that is rolled out and available: baking, or
// done if it has been so for long enough.
func (m *member) judgeBake(now time.Time) phase {
	if m.bakeTime() > 0 && now.Before(m.bakeEnd()) {
		return baking
	}
	return done
}

// bakeEnd returns when a member that is rolled out has been ready for long enough.
func (m *member) bakeEnd() time.Time {
	return m.state.ReadySince.Add(m.bakeTime())
}

// bakeTime returns the largest minReadySeconds of all coordinations that select the
// member; zero if it goes back.
func (m *member) bakeTime() time.Duration {
	if m.goesBack() {
		return 0
	}
	var seconds int32
	for _, g := range m.groups {
		seconds = max(seconds, g.Spec.MinReadySeconds)
	}
	return time.Duration(seconds) * time.Second
}
