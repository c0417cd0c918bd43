// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"fmt"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// emit keeps notes until the journal is stored.
func (g *group) emit(notes ...Note) { g.notes = append(g.notes, notes...) }

func activatedNote(m *member) Note {
	why := "its turn has come"
	if !m.Paused {
		why = "it rolls out already"
	}
	return Note{Reason: coordinationv1.DeploymentActivatedEvent, Message: fmt.Sprintf("%s is active: %s", m.Key, why)}
}

func readyNote(m *member) Note {
	text := fmt.Sprintf("%s is rolled out", m.Key)
	switch t := m.bakeTime(); {
	case m.goesBack():
		text += ", with a template that was ready before"
	case t > 0:
		text += fmt.Sprintf(" and has been ready for %s", t)
	}
	return Note{Reason: coordinationv1.ActiveDeploymentReadyEvent, Message: text}
}

func changedNote(from, to *member) Note {
	text := fmt.Sprintf("the turn goes from %s to %s", from.Key, to.Key)
	if from.superseded {
		text += "; the first has a new template since it was rolled out, which waits for another turn"
	}
	return Note{Reason: coordinationv1.ActiveDeploymentChangedEvent, Message: text}
}

// clearedNote is about a turn that has ended, and that no member of the coordination gets.
func (g *group) clearedNote(from *member) Note {
	text := fmt.Sprintf("the turn of %s is over, and ", from.Key)
	switch stop, next := g.component.stoppedBy(g.component.active), g.component.heir(g); {
	case next != nil:
		text = fmt.Sprintf("the turn goes from %s to %s, which is not selected here", from.Key, next.Key)
	case !g.waits():
		text += "no Deployment waits for the next"
	case stop != nil:
		text += "no Deployment gets the next: " + stop.described()
	case len(g.component.active) >= g.component.limit():
		text += fmt.Sprintf("no Deployment gets the next while %s", areActive(g.component.active))
	default:
		text += "no Deployment gets the next while a selector is a mistake"
	}
	return Note{Reason: coordinationv1.ActiveDeploymentClearedEvent, Message: text}
}

// heir returns the member outside of the group that gets a turn which the group had; nil
// if there is none. If all turns are taken, it may have had its turn before.
func (c *component) heir(g *group) *member {
	full := len(c.active) >= c.limit()
	var heir *member
	for _, m := range c.active {
		if !g.selects(m) && (m.begins || full && heir == nil) {
			heir = m
		}
	}
	return heir
}

// areActive returns a text that names members that have a turn.
func areActive(members []*member) string {
	if len(members) == 1 {
		return members[0].Key + " is active"
	}
	return enumerate(keys(members)) + " are active"
}

func goneNote(name string) Note {
	return Note{Reason: coordinationv1.ActiveDeploymentClearedEvent, Message: fmt.Sprintf("%s had the turn; it was deleted, or is not selected any more", name)}
}

// whyPaused returns why a member is paused.
func (m *member) whyPaused() string {
	switch {
	case m.UserPaused:
		return "the annotation " + coordinationv1.RolloutPausedAnnotation + " keeps it paused"
	case m.outdated:
		return "it waits for its turn"
	}
	return "it has nothing to roll out"
}

func pausedNote(c *component, m *member) Note {
	why := m.whyPaused()
	if m.outdated && !m.UserPaused && len(c.active) > 0 {
		why += "; " + areActive(c.active)
	}
	return Note{Reason: coordinationv1.DeploymentPausedEvent, Message: fmt.Sprintf("%s is paused: %s", m.Key, why)}
}

func pauseFailedNote(m *member) Note {
	return Note{Reason: coordinationv1.PauseFailedEvent, Warning: true, Message: m.Key + " could not be paused"}
}

func unpausedNote(m *member) Note {
	why := "it has nothing to roll out, and idlePolicy is Resume"
	if m.hasTurn() {
		why = "it has the turn"
	}
	if m.PausedBy != "" && m.HeldBy == "" {
		why += fmt.Sprintf(" (%s had paused it)", m.PausedBy)
	}
	return Note{Reason: coordinationv1.DeploymentUnpausedEvent, Message: fmt.Sprintf("%s is unpaused: %s", m.Key, why)}
}

func unpauseFailedNote(m *member) Note {
	return Note{Reason: coordinationv1.UnpauseFailedEvent, Warning: true, Message: m.Key + " could not be unpaused"}
}
