// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"fmt"
	"strings"
	"time"
)

// hasFailed reports whether Kubernetes gave up the rollout for which the member has the
// turn, or whether the rollout broke after it was complete.
func (m *member) hasFailed(now time.Time) bool { return m.wasGivenUp(now) || m.brokeDown(now) }

// whyFailed returns why a rollout has failed.
func (m *member) whyFailed(now time.Time) string {
	if m.wasGivenUp(now) {
		return strings.TrimSuffix(m.Failure.Message, ".")
	}
	return fmt.Sprintf("it was rolled out, and has not stayed available since %s: %d of %d replicas are available now",
		m.state.UnavailableSince.UTC().Format(time.RFC3339), m.AvailableReplicas, m.Replicas)
}

// brokeDown reports whether the member has not stayed available, after its rollout was
// complete, for the time that a rollout may make no progress. Kubernetes gives up no
// rollout that was complete.
func (m *member) brokeDown(now time.Time) bool {
	at := m.breakdown()
	return !at.IsZero() && !now.Before(at)
}

// breakdown returns when missing replicas count as a failure; zero if none are missing,
// or if they never do.
func (m *member) breakdown() time.Time {
	if m.state.UnavailableSince == nil || m.ProgressDeadline <= 0 {
		return time.Time{}
	}
	return m.state.UnavailableSince.Add(m.ProgressDeadline)
}

// wasGivenUp reports whether Kubernetes has given up the rollout for which the member has
// the turn. Its condition may be left over from an earlier rollout: it counts if it was
// set since the turn began, or if it is still set when this rollout would be given up as
// well.
func (m *member) wasGivenUp(now time.Time) bool {
	if m.Failure == nil || m.state.LastRolloutStarted == nil {
		return false
	}
	if !m.Failure.At.Before(m.state.LastRolloutStarted.Time) {
		return true
	}
	return m.ProgressDeadline > 0 && !now.Before(m.deadline())
}

// deadline returns when Kubernetes gives up a rollout that makes no progress at all.
func (m *member) deadline() time.Time {
	return m.state.LastRolloutStarted.Add(m.ProgressDeadline)
}

// givenUpAt returns when a failure that does not count yet begins to count; zero if
// never.
func (m *member) givenUpAt(now time.Time) time.Time {
	if m.Failure == nil || m.ProgressDeadline <= 0 || !now.Before(m.deadline()) {
		return time.Time{}
	}
	return m.deadline()
}
