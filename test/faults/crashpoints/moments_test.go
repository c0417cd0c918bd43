// SPDX-License-Identifier: Apache-2.0

package crashpoints

import (
	"fmt"

	"github.com/fluxrollouts/rollout-controller/test/faults/wire"
)

// moment is when the controller of an environment is killed: at its nth write of a kind.
// The kind of a report to the registry is "".
type moment struct {
	environment string
	kind        string
	nth         int
}

// String returns the moment as the name of a test.
func (m moment) String() string {
	kind := m.kind
	if kind == "" {
		kind = "report"
	}
	return fmt.Sprintf("%s, %s %d", m.environment, kind, m.nth)
}

// kindOf returns what a write does, without the names of a world.
func kindOf(r wire.Request) string { return r.Verb + " " + r.Resource }

// moments returns all writes of a run but those of events, which change nothing.
func (c *crossing) moments() []moment {
	var all []moment
	for _, name := range environments {
		seen := map[string]int{}
		for _, entry := range c.in(name).wire.Writes() {
			if kind := kindOf(entry.Request); !entry.IsEvent() {
				seen[kind]++
				all = append(all, moment{name, kind, seen[kind]})
			}
		}
	}
	for n := range c.registry.reports() {
		all = append(all, moment{"staging", "", n + 1})
	}
	return all
}

// killAt kills a controller at a moment before the write has arrived. It kills the next
// one at its first write of the kind, after that has arrived.
func (c *crossing) killAt(m moment) {
	w := c.in(m.environment)
	faults := []wire.Fault{wire.Drop(), wire.Lose()}
	if m.kind == "" {
		c.registry.killAt(m.nth, faults, func() { c.kill(w); c.pushKills.Add(1) })
		return
	}
	seen, next := 0, 0
	w.wire.Inject(func(r wire.Request) wire.Fault {
		w.mu.Lock()
		defer w.mu.Unlock()
		if r.Write == 0 || kindOf(r) != m.kind || !w.controller.Running() {
			return wire.Fault{}
		}
		if seen++; seen < m.nth || next == len(faults) {
			return wire.Fault{}
		}
		next++
		return faults[next-1].Then(func() { c.kill(w); w.kills.Add(1) })
	})
}

func (c *crossing) kill(w *world) {
	if err := w.controller.Kill(); err != nil {
		c.t.Error(err)
	}
}

// killAt calls a function with the reports from the nth on, one for each fault.
func (c *counter) killAt(nth int, faults []wire.Fault, kill func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := 0
	c.fault = func(push int) wire.Fault {
		if push < nth || next == len(faults) {
			return wire.Fault{}
		}
		next++
		return faults[next-1].Then(kill)
	}
}
