// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// stamp returns a time as a journal stores it: in whole seconds. It is rounded up. So no
// wait that begins with it is too short.
func stamp(t time.Time) *metav1.Time {
	whole := t.Truncate(time.Second)
	if whole.Before(t) {
		whole = whole.Add(time.Second)
	}
	return &metav1.Time{Time: whole}
}

// remember merges the journal entries of the member. They may differ if not all journals
// could be written, or if a coordination is new.
func (m *member) remember() {
	for _, g := range m.groups {
		if past, found := g.entry(m); found {
			m.merge(past)
		}
	}
	m.state.Name, m.state.UID = m.Key, m.UID
}

// entry returns the entry of the member in one journal. It ignores an entry about another
// Deployment that had the same name.
func (g *group) entry(m *member) (coordinationv1.DeploymentState, bool) {
	for _, s := range g.Journal.DeploymentStates {
		if s.Name == m.Key && (s.UID == m.UID || s.UID == "") {
			return s, true
		}
	}
	return coordinationv1.DeploymentState{}, false
}

// knewAnother reports whether the journal knew another Deployment of that name.
func (g *group) knewAnother(m *member) bool {
	_, same := g.entry(m)
	return !same && slices.ContainsFunc(g.Journal.DeploymentStates, func(s coordinationv1.DeploymentState) bool {
		return s.Name == m.Key
	})
}

// merge keeps the newer of two entries. If both are about the same turn, the rollout is
// finished if one of them has it so, and ready only if both have it so. A template was
// ready only if both have it.
func (m *member) merge(s coordinationv1.DeploymentState) {
	switch {
	case !m.known, later(s.LastRolloutStarted, m.state.LastRolloutStarted):
		m.state = s
	case sameTime(s.LastRolloutStarted, m.state.LastRolloutStarted) && s.Template == m.state.Template:
		if later(s.LastRolloutFinished, m.state.LastRolloutFinished) {
			m.state.LastRolloutFinished = s.LastRolloutFinished
		}
		m.state.HasPendingChanges = m.state.HasPendingChanges && s.HasPendingChanges
		m.state.ReadySince = latestOfBoth(m.state.ReadySince, s.ReadySince)
		m.state.UnavailableSince = latestOfBoth(m.state.UnavailableSince, s.UnavailableSince)
		m.state.ReadyTemplates = inBoth(m.state.ReadyTemplates, s.ReadyTemplates)
	}
	m.known = true
}

// later reports whether a is after b; an unknown time is before all others.
func later(a, b *metav1.Time) bool {
	return a != nil && (b == nil || b.Before(a))
}

func sameTime(a, b *metav1.Time) bool { return !later(a, b) && !later(b, a) }

func latestOfBoth(a, b *metav1.Time) *metav1.Time {
	if a == nil || b == nil {
		return nil
	}
	if later(a, b) {
		return a
	}
	return b
}

// earliest returns the earlier of two times, where zero means never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
