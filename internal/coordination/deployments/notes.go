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

func (g *group) clearedNote(from, next *member) Note {
	text := fmt.Sprintf("the turn of %s is over, and nobody waits for the next", from.Key)
	switch {
	case next == nil && g.waits():
		text = fmt.Sprintf("the turn of %s is over, and nobody gets the next while a selector is a mistake", from.Key)
	case next != nil:
		text = fmt.Sprintf("the turn goes from %s to %s, which is not selected here", from.Key, next.Key)
	}
	return Note{Reason: coordinationv1.ActiveDeploymentClearedEvent, Message: text}
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
	if m.outdated && !m.UserPaused && c.active != nil {
		why += "; " + c.active.Key + " is active"
	}
	return Note{Reason: coordinationv1.DeploymentPausedEvent, Message: fmt.Sprintf("%s is paused: %s", m.Key, why)}
}

func pauseFailedNote(m *member) Note {
	return Note{Reason: coordinationv1.PauseFailedEvent, Warning: true, Message: m.Key + " could not be paused"}
}

func unpausedNote(c *component, m *member) Note {
	why := "it has nothing to roll out, and idlePolicy is Resume"
	if m == c.active {
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
