// SPDX-License-Identifier: Apache-2.0

package deployments

import "slices"

// Decide returns what to do in the namespace now. The same input gives the same plan.
func Decide(in Input) Plan {
	n := survey(in)
	if n.isStopped() {
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

// namespace contains the coordinations and Deployments of the plan, and which
// coordination selects which Deployment.
type namespace struct {
	in         Input
	groups     []*group
	components []*component
	// strays are the Deployments that no coordination selects.
	strays []*member
}

// isStopped reports whether nothing may be done. Then the journals keep their content.
func (n *namespace) isStopped() bool { return n.in.Other != "" || n.in.Unreadable != nil }

// resume restores the turns from the journals, and advances all members to now.
func (n *namespace) resume() {
	for _, g := range n.groups {
		g.resume()
	}
	for _, c := range n.components {
		for _, m := range c.members {
			m.advance(n.in.Now)
		}
	}
}

// turned reports whether a turn is not where a journal has it.
func (n *namespace) turned() bool {
	return slices.ContainsFunc(n.groups, func(g *group) bool { return g.turned })
}
