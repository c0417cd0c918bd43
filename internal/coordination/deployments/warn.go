// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"fmt"
	"slices"
	"strings"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// byHand are the field managers of users who pause with kubectl.
var byHand = []string{"kubectl-rollout", "kubectl-edit", "kubectl-patch"}

// warnContested adds a warning if another writer sets spec.paused of a member against the
// present write. The other writer begins every round. So each round has one write, at
// once, and one warning. A write that is repeated after an error has had its warning
// before.
func (g *group) warnContested(m *member, w Write) {
	switch {
	case g.problem != nil, m.WriteError != "" || slices.Contains(byHand, m.PausedBy):
	case m.PausedBy == "":
		g.warnRemoved(m, w)
	case w.Kind == WriteUnpause && g.released(m):
		g.emit(contestedNote(m, "true although it has the turn"))
	case w.Kind == WritePause && m.outdated:
		g.emit(contestedNote(m, "false although it waits for its turn"))
	case m.keepsUnpaused() && m.idlesPaused() && !g.knewResumed(m):
		g.emit(contestedNote(m, "false, so it is not paused while it has nothing to roll out"))
	}
}

// warnRemoved warns that another writer has removed spec.paused, which then has no owner.
func (g *group) warnRemoved(m *member, w Write) {
	if w.Kind == WritePause && m.WasPaused {
		g.emit(removedNote(m))
	}
}

func contestedNote(m *member, what string) Note {
	return Note{Reason: coordinationv1.PausedByManifestEvent, Warning: true, Message: fmt.Sprintf(
		"%s sets spec.paused of %s to %s; take the field out of the manifest", m.PausedBy, m.Key, what)}
}

// removedNote is about a writer who does not set spec.paused to false but removes the
// field, which then has no owner.
func removedNote(m *member) Note {
	return Note{Reason: coordinationv1.PausedByManifestEvent, Warning: true, Message: fmt.Sprintf(
		"spec.paused of %s was removed although %s; clients that update the whole Deployment must keep the field, "+
			"or use a patch or server-side apply", m.Key, m.whyPaused())}
}

// keepsUnpaused reports whether another writer keeps the member unpaused while it has
// nothing to roll out. To pause it would mean to write again and again, without any use.
func (m *member) keepsUnpaused() bool {
	return !m.Paused && m.PausedBy != "" && m.idle()
}

// warnIdle warns about the members that Flux will never find ready, once they have
// nothing to roll out.
func (g *group) warnIdle() {
	var names []string
	for _, m := range g.members {
		if m.mistake() == nil && m.AppliedBy != "" && m.idle() && m.idlesPaused() && !m.keepsUnpaused() && !g.knewIdle(m) {
			names = append(names, fmt.Sprintf("%s of %s", m.Key, m.AppliedBy))
		}
	}
	if len(names) == 0 {
		return
	}
	g.emit(Note{Reason: coordinationv1.IdlePausedEvent, Warning: true, Message: "paused while there is nothing to roll out, which Flux never finds ready: " +
		enumerate(names) + "; set spec.idlePolicy to Resume"})
}

// idle reports whether the member has nothing to roll out, and no user has paused it by
// annotation.
func (m *member) idle() bool { return !m.outdated && !m.hasTurn() && !m.UserPaused }

// released reports whether the member was unpaused in this turn and is paused again: the
// write that unpauses removes held-by, and creates a newer generation than the journal
// has.
func (g *group) released(m *member) bool {
	past, _ := g.entry(m)
	return g.gaveTurn(m) && m.HeldBy == "" && past.Generation < m.Generation
}

// gaveTurn reports whether the journal has given the member the turn already.
func (g *group) gaveTurn(m *member) bool {
	return g.Journal.HasTurn(m.Key) && !g.knewAnother(m)
}

// knewIdle reports whether the member had nothing to roll out according to the journal,
// for the same spec.
func (g *group) knewIdle(m *member) bool {
	past, known := g.entry(m)
	return known && !past.HasPendingChanges && !g.gaveTurn(m) && g.Journal.ObservedGeneration == g.Generation
}

// knewResumed reports whether knewIdle is true and the spec of the Deployment has not
// changed since.
func (g *group) knewResumed(m *member) bool {
	past, _ := g.entry(m)
	return g.knewIdle(m) && past.Generation == m.Generation
}

// few is how many names a message contains.
const few = 5

// enumerate lists the first few names.
func enumerate(names []string) string {
	if more := len(names) - few; more > 0 {
		names = append(slices.Clone(names[:few]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
