// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/coordination"
)

// place returns the member's place in the order of turns. A turn counts if it was given
// since the component had nothing to do. A member that has finished its turn, and has
// begun with yet another template, comes after those that had no turn.
func (m *member) place(since *metav1.Time) coordination.Member {
	order, _ := m.order()
	p := coordination.Member{Name: m.Key, Halfway: m.halfway(), Progress: m.progress(), Order: order}
	if s := m.state.LastRolloutStarted; s != nil && since != nil && !s.Before(since) {
		p.LastTurn = s.Time
		p.Halfway = p.Halfway && m.unfinished()
	}
	return p
}

// order returns the number in the annotation. It returns false if it is not a number;
// then the order is 0, as without the annotation.
func (m *member) order() (int64, bool) {
	if m.Order == "" {
		return 0, true
	}
	order, err := strconv.ParseInt(m.Order, 10, 64)
	if err != nil {
		return 0, false
	}
	return order, true
}

// busySince returns when the component last began to have something to do; nil if it has
// nothing to do.
func (c *component) busySince() *metav1.Time {
	var since *metav1.Time
	for _, g := range c.groups {
		ready := g.condition(coordinationv1.ReadyCondition)
		if ready != nil && ready.Status == metav1.ConditionFalse && (since == nil || ready.LastTransitionTime.Before(since)) {
			since = &ready.LastTransitionTime
		}
	}
	return since
}

// condition returns a condition of the journal; nil if there is none of that type.
func (g *group) condition(kind string) *metav1.Condition {
	for i := range g.Journal.Conditions {
		if g.Journal.Conditions[i].Type == kind {
			return &g.Journal.Conditions[i]
		}
	}
	return nil
}
