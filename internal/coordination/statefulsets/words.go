// SPDX-License-Identifier: Apache-2.0

package statefulsets

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/rolloutgroup"
)

// onDelete is the update strategy that every set of a group must have.
const onDelete = "OnDelete"

// mentioned is how many pods of a set a message names.
const mentioned = 3

func notOnDelete(sets []*tally) []*tally {
	return slices.DeleteFunc(slices.Clone(sets), func(s *tally) bool { return s.Strategy == onDelete })
}

func names(sets []*tally) []string {
	all := make([]string, len(sets))
	for i, s := range sets {
		all[i] = s.Name
	}
	return all
}

func strategies(sets []*tally) string {
	all := make([]string, len(sets))
	for i, s := range sets {
		all[i] = fmt.Sprintf("%s has %s", s.Name, s.Strategy)
	}
	return fmt.Sprintf("every set of a rollout group must have the update strategy %s, and no pod is replaced until then: %s",
		onDelete, strings.Join(all, ", "))
}

func paused(sets []string) string {
	return "what is outdated is paused by annotation: " + strings.Join(sets, ", ")
}

// waitsFor returns why pods of the set are not replaced while other sets are not ready.
func waitsFor(s *tally, obstacles []*tally) (reason, message string) {
	reason = rolloutgroup.SetNotReadyReason
	if len(obstacles) > 1 {
		reason = rolloutgroup.SetsNotReadyReason
	}
	lacks := make([]string, len(obstacles))
	for i, o := range obstacles {
		lacks[i] = o.lacks()
	}
	return reason, fmt.Sprintf("%s waits until all other sets are ready: %s", s.Name, strings.Join(lacks, "; "))
}

// held returns why the set that has the turn does not continue. It returns nothing while
// replaced pods are starting.
func (t *tally) held() (reason, message string) {
	var dead, idle []member
	for _, m := range t.members {
		switch {
		case m.phase == stuck:
			dead = append(dead, m)
		case m.phase == unready && t.outdated(m):
			idle = append(idle, m)
		}
	}
	switch {
	case len(dead) > 0:
		return rolloutgroup.PodsStuckReason, fmt.Sprintf("pods of the wanted revision %s do not start: %s", t.UpdateRevision, list(dead))
	case len(idle) > 0 && t.Replicas-t.in(available) == int32(len(idle)):
		return rolloutgroup.PodsNotReadyReason, fmt.Sprintf(
			"outdated pods are not ready, and use up what may be unavailable: %s", list(idle))
	}
	return "", ""
}

// lacks returns why the set is not settled.
func (t *tally) lacks() string {
	text := ""
	switch {
	case t.Deleting:
		text = t.Name + " is being deleted"
	case !t.Observed():
		text = t.Name + " has changed, and its status does not say how yet"
	case t.Replicas > t.in(available):
		text = fmt.Sprintf("%s has %d of %d pods available: %s", t.Name, t.in(available), t.Replicas, t.absent())
	case t.unavailable() > 0:
		text = fmt.Sprintf("%s has %d of %d pods ready by its status", t.Name, t.StatusReady, t.StatusReplicas)
	default:
		text = fmt.Sprintf("%s has pods beyond its replicas: %s", t.Name, strings.Join(t.surplus, ", "))
	}
	if t.Paused {
		text += " (paused)"
	}
	return text
}

// patience is how long the StatefulSet controller may take to observe a change before that
// is reported. Usually it takes a moment.
const patience = 5 * time.Minute

func (s *Set) overdue() string {
	return fmt.Sprintf("for more than %d minutes, the status has not shown generation %d: it is of generation %d, and the rollout group waits for it; "+
		"check that kube-controller-manager runs, and its log for this StatefulSet", int(patience.Minutes()), s.Generation, s.ObservedGeneration)
}

// absent returns the list of pods that are not available.
func (t *tally) absent() string {
	var there []member
	for _, m := range t.members {
		if m.phase != available {
			there = append(there, m)
		}
	}
	var parts []string
	if len(there) > 0 {
		parts = append(parts, list(there))
	}
	if n := t.missing(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d do not exist", n))
	}
	return strings.Join(parts, ", ")
}

func list(pods []member) string {
	var parts []string
	for _, m := range pods[:min(len(pods), mentioned)] {
		parts = append(parts, m.Name+" is "+m.word())
	}
	if more := len(pods) - mentioned; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

func (m member) word() string {
	switch m.phase {
	case stuck:
		return "stuck in " + m.Stuck
	case unready:
		return "not ready"
	case soaking:
		return "ready, though not for long enough"
	case available, terminating:
	}
	return string(m.phase)
}
