// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// group is a coordination with the Deployments that it selects.
type group struct {
	Coordination
	// problem is why its selector is a mistake; nil if it is valid. The group then keeps
	// the members that it had: its turn goes on, and it gives none.
	problem  *problem
	selector labels.Selector
	// members are sorted by name.
	members []*member
	// component is the component of the group.
	component *component
	// active are the members that have a turn, sorted by name.
	active []*member
	// turned means that the turns are not where the journal has them.
	turned bool
	notes  []Note
}

// problem is a mistake in a coordination that only a user can fix.
type problem struct {
	reason, message string
}

// member is a Deployment and its entry in the journals.
type member struct {
	Deployment
	// groups are the groups that select it, sorted by name.
	groups []*group
	// state is the entry of the journals, first the stored one and then the next one.
	state coordinationv1.DeploymentState
	// known means that there was such an entry.
	known bool
	// outdated means that its template is not rolled out.
	outdated bool
	// superseded means that it has a new template after it was rolled out in its turn.
	// That ends the turn.
	superseded bool
	// begins means that it gets a turn in this plan.
	begins bool
	// phase is the phase of its turn.
	phase phase
}

// component is all groups that share Deployments, directly or through others. They have
// their turns in common.
type component struct {
	now     time.Time
	groups  []*group
	members []*member
	// active are the members that have a turn, sorted by name.
	active []*member
	// recheckAt is when time alone may change the decision.
	recheckAt time.Time
}

// survey resolves which groups select which Deployments, and reads the journals.
func survey(in Input) *namespace {
	n := &namespace{in: in}
	for _, c := range in.Coordinations {
		n.groups = append(n.groups, read(c))
	}
	slices.SortFunc(n.groups, func(a, b *group) int { return strings.Compare(a.Name, b.Name) })
	members := make([]*member, 0, len(in.Deployments))
	for _, d := range in.Deployments {
		members = append(members, &member{Deployment: d})
	}
	slices.SortFunc(members, func(a, b *member) int { return strings.Compare(a.Key, b.Key) })
	for _, m := range members {
		n.place(m)
	}
	n.join(members)
	return n
}

// read parses the selector.
func read(c Coordination) *group {
	g := &group{Coordination: c}
	selector, err := metav1.LabelSelectorAsSelector(&c.Spec.LabelSelector)
	switch {
	case err != nil:
		g.problem = &problem{coordinationv1.InvalidSelectorReason, "spec.labelSelector cannot be understood: " + err.Error()}
	case selector.Empty():
		g.problem = &problem{coordinationv1.EmptySelectorReason,
			"spec.labelSelector is empty, which would select every Deployment of the namespace, so no Deployment gets a turn: name labels"}
	default:
		g.selector = selector
	}
	return g
}

// place finds the groups that a Deployment belongs to.
func (n *namespace) place(m *member) {
	for _, g := range n.groups {
		if g.has(m) {
			g.members = append(g.members, m)
			m.groups = append(m.groups, g)
		}
	}
	if len(m.groups) == 0 {
		n.strays = append(n.strays, m)
		return
	}
	m.remember()
}

// has reports whether the Deployment is a member. While the selector is a mistake, the
// members are those of the journal, and those that wait for the group without being in it,
// because they were created a moment before.
func (g *group) has(m *member) bool {
	if g.problem == nil {
		return g.selector.Matches(labels.Set(m.Labels))
	}
	return g.Name == m.HeldBy || slices.Contains(g.Journal.Deployments, m.Key) && !g.knewAnother(m)
}

// join puts groups that share members into one component.
func (n *namespace) join(members []*member) {
	for _, g := range n.groups {
		if g.component == nil {
			c := &component{now: n.in.Now}
			c.take(g)
			n.components = append(n.components, c)
		}
	}
	for _, m := range members {
		if len(m.groups) > 0 {
			c := m.groups[0].component
			c.members = append(c.members, m)
		}
	}
	for _, c := range n.components {
		slices.SortFunc(c.groups, func(a, b *group) int { return strings.Compare(a.Name, b.Name) })
	}
}

// take adds a group, and all that share members with it.
func (c *component) take(g *group) {
	if g.component != nil {
		return
	}
	g.component = c
	c.groups = append(c.groups, g)
	for _, m := range g.members {
		for _, other := range m.groups {
			c.take(other)
		}
	}
}

// name identifies the component: it is the name of the first coordination.
func (c *component) name() string { return c.groups[0].Name }

// selects reports whether the member belongs to the group.
func (g *group) selects(m *member) bool {
	return m != nil && slices.Contains(m.groups, g)
}
