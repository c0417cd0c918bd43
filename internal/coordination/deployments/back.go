// SPDX-License-Identifier: Apache-2.0

package deployments

import "slices"

// mostReady is how many templates a journal keeps of each member.
const mostReady = 5

// goesBack reports whether the member was ready with its template before. The present
// template counts only once its turn is over, so it bakes the first time.
func (m *member) goesBack() bool {
	return slices.Contains(m.state.ReadyTemplates, m.Template)
}

// readyTemplates returns the next list of templates with which the member was ready. Going
// back drops the newer ones: they were abandoned, and bake again if they return. Without
// Pods, nothing was ready.
func (m *member) readyTemplates() []string {
	before := m.state.ReadyTemplates
	if m.hasTurn() || m.Replicas == 0 || !m.allUp() {
		return before
	}
	if m.goesBack() {
		return before[slices.Index(before, m.Template):]
	}
	return slices.Concat([]string{m.Template}, before[:min(len(before), mostReady-1)])
}

// inBoth returns the elements of a that b has, too.
func inBoth(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
}
