// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"fmt"
	"slices"
	"strings"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// byHand are the field managers of people who pause with kubectl.
var byHand = []string{"kubectl-rollout", "kubectl-edit", "kubectl-patch"}

// warnContested tells that somebody else writes spec.paused of a member, against
// what is written now. The other one begins every round of it, so each is answered
// once, at once, and told. What has to be written again was told before.
func (g *group) warnContested(m *member, w Write) {
	switch {
	case m.WriteError != "" || slices.Contains(byHand, m.PausedBy):
	case m.PausedBy == "":
		g.warnRemoved(m, w)
	case w.Kind == WriteRelease && g.released(m):
		g.tell(contestedNote(m, "true although it has the turn"))
	case w.Kind == WriteHold && m.outdated:
		g.tell(contestedNote(m, "false although it waits for its turn"))
	case m.spellsResume() && m.idlesPaused() && !g.knewResumed(m):
		g.tell(contestedNote(m, "false, so it is not paused while it has nothing to roll out"))
	}
}

// warnRemoved tells that somebody has removed spec.paused, which then has no owner.
func (g *group) warnRemoved(m *member, w Write) {
	if w.Kind == WriteHold && m.WasHeld {
		g.tell(removedNote(m))
	}
}

func contestedNote(m *member, what string) Note {
	return Note{Reason: coordinationv1.PausedByManifestEvent, Warning: true, Message: fmt.Sprintf(
		"%s sets spec.paused of %s to %s; take the field out of the manifest", m.PausedBy, m.Key, what)}
}

// removedNote is about somebody who does not say that the member is not paused, but
// removes the field, so that nobody owns it.
func removedNote(m *member) Note {
	return Note{Reason: coordinationv1.PausedByManifestEvent, Warning: true, Message: fmt.Sprintf(
		"somebody has removed spec.paused of %s although %s; whoever updates the whole Deployment has to keep the field, "+
			"or use a patch or server-side apply", m.Key, m.whyPaused())}
}

// spellsResume reports whether somebody else says that the member is not paused
// while it has nothing to roll out. To pause it would be written again and again,
// for nothing.
func (m *member) spellsResume() bool {
	return !m.Paused && m.PausedBy != "" && m.idle()
}

// warnIdle tells of the members that Flux will never find ready, once they have
// nothing to roll out.
func (g *group) warnIdle() {
	var names []string
	for _, m := range g.members {
		if m.AppliedBy != "" && m.idle() && m.idlesPaused() && !m.spellsResume() && !g.knewIdle(m) {
			names = append(names, fmt.Sprintf("%s of %s", m.Key, m.AppliedBy))
		}
	}
	if len(names) == 0 {
		return
	}
	g.tell(Note{Reason: coordinationv1.IdlePausedEvent, Warning: true, Message: "paused while there is nothing to roll out, which Flux never finds ready: " +
		enumerate(names) + "; set spec.idlePolicy to Resume"})
}

// idle reports whether the member has nothing to roll out, and nobody holds it.
func (m *member) idle() bool { return !m.outdated && !m.hasTurn() && !m.UserHeld }

// released reports whether the member was released in this turn and is paused again:
// a release removes held-by, and is another generation than the journal has.
func (g *group) released(m *member) bool {
	past, _ := g.entry(m)
	return g.gaveTurn(m) && m.HeldBy == "" && past.Generation < m.Generation
}

// gaveTurn reports whether the journal has given the member the turn already.
func (g *group) gaveTurn(m *member) bool {
	return g.Journal.ActiveDeployment == m.Key && !g.knewAnother(m)
}

// knewIdle reports whether the journal, for the same spec, has the member as one
// that has nothing to roll out.
func (g *group) knewIdle(m *member) bool {
	past, known := g.entry(m)
	return known && !past.HasPendingChanges && !g.gaveTurn(m) && g.Journal.ObservedGeneration == g.Generation
}

// knewResumed reports in addition whether nobody has written the spec of the
// Deployment since.
func (g *group) knewResumed(m *member) bool {
	past, _ := g.entry(m)
	return g.knewIdle(m) && past.Generation == m.Generation
}

// enumerate names the first few.
func enumerate(names []string) string {
	const few = 5
	if more := len(names) - few; more > 0 {
		names = append(slices.Clone(names[:few]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
