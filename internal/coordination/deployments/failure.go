// SPDX-License-Identifier: Apache-2.0

package deployments

import "time"

// hasFailed reports whether Kubernetes has given up the rollout for which the
// member has the turn. What it says may be left over from an earlier rollout: it
// counts if it was said since the turn began, or if it still stands when this
// rollout would be given up as well.
func (m *member) hasFailed(now time.Time) bool {
	if m.Failure == nil || m.state.LastRolloutStarted == nil {
		return false
	}
	if !m.Failure.At.Before(m.state.LastRolloutStarted.Time) {
		return true
	}
	return m.ProgressDeadline > 0 && !now.Before(m.deadline())
}

// deadline is when Kubernetes gives up a rollout that makes no progress at all.
func (m *member) deadline() time.Time {
	return m.state.LastRolloutStarted.Add(m.ProgressDeadline)
}

// givenUpAt is when a failure that does not count yet begins to; zero if never.
func (m *member) givenUpAt(now time.Time) time.Time {
	if m.Failure == nil || m.ProgressDeadline <= 0 || !now.Before(m.deadline()) {
		return time.Time{}
	}
	return m.deadline()
}
