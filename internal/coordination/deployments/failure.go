// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"fmt"
	"strings"
	"time"
)

// hasFailed reports whether the rollout for which the member has the turn was given up
// by Kubernetes, or broke after it was complete.
func (m *member) hasFailed(now time.Time) bool { return m.wasGivenUp(now) || m.brokeDown(now) }

// whyFailed says what went wrong with a rollout that has failed.
func (m *member) whyFailed(now time.Time) string {
	if m.wasGivenUp(now) {
		return strings.TrimSuffix(m.Failure.Message, ".")
	}
	return fmt.Sprintf("it was rolled out, and has not stayed available since %s: %d of %d replicas are available now",
		m.state.UnavailableSince.UTC().Format(time.RFC3339), m.AvailableReplicas, m.Replicas)
}

// brokeDown reports whether the member has not stayed available for as long as a rollout
// may make no progress, although the rollout was complete. Kubernetes gives up none that
// was.
func (m *member) brokeDown(now time.Time) bool {
	at := m.breakdown()
	return !at.IsZero() && !now.Before(at)
}

// breakdown is when missing replicas count as a failure; zero if none are missing, or
// never.
func (m *member) breakdown() time.Time {
	if m.state.UnavailableSince == nil || m.ProgressDeadline <= 0 {
		return time.Time{}
	}
	return m.state.UnavailableSince.Add(m.ProgressDeadline)
}

// wasGivenUp reports whether Kubernetes has given up the rollout for which the
// member has the turn. What it says may be left over from an earlier rollout: it
// counts if it was said since the turn began, or if it still stands when this
// rollout would be given up as well.
func (m *member) wasGivenUp(now time.Time) bool {
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
