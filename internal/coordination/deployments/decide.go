// SPDX-License-Identifier: Apache-2.0

package deployments

import "slices"

// Decide says what to do in the namespace now. The same input gives the same plan.
func Decide(in Input) Plan {
	n := survey(in)
	if n.stands() {
		return Plan{Journals: n.journals()}
	}
	n.resume()
	p := Plan{}
	for _, c := range n.components {
		c.decide()
		p.RecheckAt = earliest(p.RecheckAt, c.recheckAt)
	}
	p.Writes = n.writes()
	p.Journals = n.journals()
	p.Begins = n.turned()
	return p
}

// namespace is what is planned: its coordinations and Deployments, and who selects
// whom.
type namespace struct {
	in         Input
	groups     []*group
	components []*component
	// strays are selected by no coordination.
	strays []*member
}

// stands reports whether nothing may be done, so that what the journals know stays
// as it is.
func (n *namespace) stands() bool { return n.in.Other != "" || n.in.Unreadable != nil }

// resume takes up the turns of the journals, and moves all clocks to now.
func (n *namespace) resume() {
	for _, g := range n.groups {
		if g.problem == nil {
			g.resume()
		}
	}
	for _, c := range n.components {
		for _, m := range c.members {
			m.advance(n.in.Now)
		}
	}
}

// turned reports whether a turn is not where a journal says.
func (n *namespace) turned() bool {
	return slices.ContainsFunc(n.groups, func(g *group) bool { return g.turned })
}
