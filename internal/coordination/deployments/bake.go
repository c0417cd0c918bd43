// SPDX-License-Identifier: Apache-2.0

package deployments

import "time"

// begin starts a rollout: the member is given the turn, or has a new template
// while it has the turn.
func (m *member) begin(now time.Time) {
	m.state.LastRolloutStarted = stamp(now)
	m.state.ReadySince, m.state.UnavailableSince = nil, nil
	m.state.HasPendingChanges = true
	m.state.Template = m.Template
	m.outdated = true
}

// advance moves what the journals know of the member to now. A new template and the
// loss of availability end the time for which it has been ready; a change of
// replicas does not.
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
	if m.complete() {
		m.finish(now)
	}
	m.noteReadiness(now)
	m.noteBreakdown(now)
}

// noteReadiness notes since when the member has been rolled out, and how many replicas
// were there when all were: also while it was paused, for those can be lost as well.
func (m *member) noteReadiness(now time.Time) {
	if m.allUp() {
		m.state.ReadyReplicas = m.Replicas
	}
	if m.RolledOut && m.state.ReadySince == nil {
		m.state.ReadySince = stamp(now)
	}
}

// noteBreakdown notes since when the member that has the turn has not stayed available,
// although its rollout was complete. Nothing is known of one that is paused. If Available
// was lost, it is not enough that it is back for a moment, as in a crash loop: see
// recovered.
func (m *member) noteBreakdown(now time.Time) {
	switch {
	case !m.hasTurn(), m.Paused, m.outdated, m.RolledOut && !m.isWell():
		m.state.UnavailableSince = nil
	case !m.RolledOut && m.state.UnavailableSince == nil:
		m.state.UnavailableSince = stamp(now)
	}
}

// recovered reports whether the member has been available again for as long as a rollout
// may make no progress.
func (m *member) recovered(now time.Time) bool {
	return m.isWell() && !now.Before(m.state.ReadySince.Add(m.ProgressDeadline))
}

// isWell reports whether the journal has the member as one of which nothing has been
// missing since it was ready.
func (m *member) isWell() bool {
	return m.state.ReadySince != nil && later(m.state.ReadySince, m.state.UnavailableSince)
}

// bakes reports whether the journal has the member as one that was rolled out in its
// turn and is well. A new template of it waits for another turn: whoever changed more
// often than it bakes would keep the turn for ever. One that is not well, or that
// somebody holds, keeps it.
func (m *member) bakes() bool {
	return m.hasTurn() && !m.RolledOut && !m.UserHeld && m.state.Template != "" && m.isWell()
}

// lostAvailability reports whether fewer replicas are available than there were. A
// Deployment that is scaled up is not available either until the new ones are.
func (m *member) lostAvailability() bool {
	return !m.Available && m.AvailableReplicas < min(m.state.ReadyReplicas, m.Replicas)
}

// finish notes that the rollout is complete, the first time that it is seen to be.
func (m *member) finish(now time.Time) {
	if m.state.HasPendingChanges || m.unfinished() {
		m.state.LastRolloutFinished = stamp(now)
	}
	m.outdated, m.state.HasPendingChanges = false, false
}

// judgeBake says whether a member that is rolled out and available has been so for
// long enough.
func (m *member) judgeBake(now time.Time) phase {
	if m.bakeTime() > 0 && now.Before(m.bakeEnd()) {
		return baking
	}
	return done
}

// bakeEnd is when a member that is rolled out has been ready for long enough.
func (m *member) bakeEnd() time.Time {
	return m.state.ReadySince.Add(m.bakeTime())
}

// bakeTime is the largest minReadySeconds of all coordinations that
// select the member.
func (m *member) bakeTime() time.Duration {
	var seconds int32
	for _, g := range m.groups {
		seconds = max(seconds, g.Spec.MinReadySeconds)
	}
	return time.Duration(seconds) * time.Second
}
