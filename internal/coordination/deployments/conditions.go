// SPDX-License-Identifier: Apache-2.0

package deployments

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
)

// verdict is the content of the conditions.
type verdict struct {
	ready, progressing, degraded, stalled claim
}

// claim is a condition without its times. The condition is absent if it has no reason.
type claim struct {
	holds           bool
	reason, message string
}

// conditions returns the conditions of a coordination.
func (g *group) conditions(n *namespace) []metav1.Condition {
	v := g.verdict(n)
	claims := []struct {
		kind string
		claim
	}{
		{coordinationv1.ReadyCondition, v.ready},
		{coordinationv1.ProgressingCondition, v.progressing},
		{coordinationv1.DegradedCondition, v.degraded},
		{coordinationv1.StalledCondition, v.stalled},
		{coordinationv1.HoldModeCondition, holdMode(n.in.HoldMode)},
	}
	var conditions []metav1.Condition
	for _, c := range claims {
		if c.reason != "" {
			conditions = append(conditions, g.state(c.kind, c.claim, n.in.Now))
		}
	}
	return conditions
}

// state returns a condition with the time since when it has its status.
func (g *group) state(kind string, c claim, now time.Time) metav1.Condition {
	status := metav1.ConditionFalse
	if c.holds {
		status = metav1.ConditionTrue
	}
	since := metav1.NewTime(now.Truncate(time.Second))
	if past := g.condition(kind); past != nil && past.Status == status {
		since = past.LastTransitionTime
	}
	return metav1.Condition{
		Type: kind, Status: status, Reason: c.reason, Message: c.message,
		ObservedGeneration: g.Generation, LastTransitionTime: since,
	}
}

// holdMode returns the condition HoldMode. It is True if admission pauses Deployments.
func holdMode(h AdmissionMode) claim {
	return claim{h.Reason != coordinationv1.ControllerOnlyReason, h.Reason, h.Message}
}

// verdict returns the first verdict that applies.
func (g *group) verdict(n *namespace) verdict {
	switch {
	case n.in.Other != "":
		return blocked(coordinationv1.OtherCoordinatorReason, n.in.Other+"; nothing is touched while it is there")
	case g.problem != nil:
		return blocked(g.problem.reason, g.problem.message)
	case n.in.Unreadable != nil:
		return broken(n.in.Unreadable.Error())
	}
	if text := g.unwritten(); text != "" {
		return broken(text)
	}
	return g.working()
}

// working returns the verdict of a coordination that works.
func (g *group) working() verdict {
	switch {
	case len(g.active) == 0 && !g.waits():
		return g.idle()
	case len(g.active) == 0:
		return g.waiting()
	case len(inPhase(failed, g.active)) > 0:
		return g.failed()
	case len(inPhase(held, g.active)) > 0:
		return g.held()
	}
	return g.rolling()
}

// waits reports whether a member waits for its turn.
func (g *group) waits() bool {
	for _, m := range g.members {
		if m.pending() && !m.hasTurn() {
			return true
		}
	}
	return false
}

func (g *group) idle() verdict {
	c := claim{true, coordinationv1.AllDeploymentsReadyReason, g.sum()}
	return verdict{
		ready:       c,
		progressing: claim{false, c.reason, c.message},
		degraded:    fine(),
	}
}

func (g *group) rolling() verdict {
	text := g.sum()
	for _, m := range g.active[:min(few, len(g.active))] {
		text += "; " + m.describe()
	}
	if more := len(g.active) - few; more > 0 {
		text += fmt.Sprintf("; and %d more are active", more)
	}
	return verdict{
		ready:       claim{false, coordinationv1.DeploymentsInProgressReason, text},
		progressing: claim{true, coordinationv1.DeploymentRollingOutReason, text},
		degraded:    fine(),
	}
}

func (g *group) held() verdict {
	text := fmt.Sprintf("%s; %s, and the annotation %s keeps it paused",
		g.sum(), areActive(inPhase(held, g.active)[:1]), coordinationv1.RolloutPausedAnnotation)
	c := claim{false, coordinationv1.ActiveDeploymentHeldReason, text}
	return verdict{ready: c, progressing: claim{true, c.reason, text}, degraded: fine()}
}

func (g *group) failed() verdict {
	all := inPhase(failed, g.active)
	text := fmt.Sprintf("%s has failed to roll out: %s; correct or revert its template, or take it out of the selection",
		all[0].Key, all[0].whyFailed(g.component.now))
	if len(all) > 1 {
		text += "; so have " + enumerate(keys(all[1:]))
	}
	c := claim{false, coordinationv1.RolloutFailedReason, text}
	bad := claim{true, c.reason, text}
	return verdict{ready: c, progressing: c, degraded: bad, stalled: bad}
}

// waiting returns the verdict of a coordination that has something to roll out, while a
// Deployment that it does not select has the turn, or while another coordination of those
// that wait gives none.
func (g *group) waiting() verdict {
	text := fmt.Sprintf("%s; waits for coordination %s", g.sum(), g.awaited())
	return verdict{
		ready:       claim{false, coordinationv1.WaitingForCoordinationReason, text},
		progressing: claim{true, coordinationv1.DeploymentsPendingReason, text},
		degraded:    fine(),
	}
}

// inTheWay returns an active member that others wait for: preferably one that stops them.
func (c *component) inTheWay() *member {
	if m := c.stoppedBy(c.active); m != nil || len(c.active) == 0 {
		return m
	}
	return c.active[0]
}

// inPhase returns the members whose turn is in the phase.
func inPhase(p phase, members []*member) []*member {
	return slices.DeleteFunc(slices.Clone(members), func(m *member) bool { return m.phase != p })
}

// awaited returns a text about the coordination that a member waits for.
func (g *group) awaited() string {
	if m := g.component.inTheWay(); m != nil {
		return fmt.Sprintf("%s, where %s", m.groups[0].Name, m.described())
	}
	for _, m := range g.members {
		if by := m.mistake(); m.pending() && by != nil {
			return fmt.Sprintf("%s, which gives no turn until its selector is corrected", by.Name)
		}
	}
	return ""
}

// blocked returns the verdict when nothing is touched until a user changes something.
func blocked(reason, message string) verdict {
	c := claim{false, reason, message}
	return verdict{ready: c, progressing: c, degraded: fine(), stalled: claim{true, reason, message}}
}

// broken returns the verdict when a read or a write has failed.
func broken(message string) verdict {
	c := claim{false, coordinationv1.ErrorReason, message}
	return verdict{ready: c, progressing: c, degraded: claim{true, c.reason, message}}
}

func fine() claim {
	return claim{false, coordinationv1.NoErrorsReason, "nothing has failed"}
}

// unwritten returns the first write error of a member; empty if there is none.
func (g *group) unwritten() string {
	for _, m := range g.members {
		if m.WriteError != "" {
			return m.Key + ": " + m.WriteError
		}
	}
	return ""
}

// sum returns a text with how many of the selected Deployments are rolled out.
func (g *group) sum() string {
	if len(g.members) == 0 {
		return "no Deployment is selected"
	}
	finished, remarks := 0, ""
	for _, m := range g.members {
		if !m.outdated {
			finished++
		}
		remarks += m.remarks()
	}
	return fmt.Sprintf("%d of %d Deployments are rolled out", finished, len(g.members)) + remarks
}

// remarks returns a text about unusual settings of a member.
func (m *member) remarks() string {
	text := ""
	if m.UserPaused && !m.hasTurn() {
		text += fmt.Sprintf("; the annotation %s keeps %s paused", coordinationv1.RolloutPausedAnnotation, m.Key)
	}
	if _, ok := m.order(); !ok {
		text += fmt.Sprintf("; the annotation %s of %s is not an integer and counts as 0", coordinationv1.OrderAnnotation, m.Key)
	}
	return text
}

// describe returns a text about the progress of a member that has a turn.
func (m *member) describe() string {
	switch m.phase {
	case activating:
		return m.Key + " is about to be unpaused"
	case baking:
		return fmt.Sprintf("%s is rolled out, and has to be ready until %s", m.Key, m.bakeEnd().UTC().Format(time.RFC3339))
	default:
		return fmt.Sprintf("%s rolls out: %s", m.Key, m.howFar())
	}
}

// described returns a text about an active member for coordinations that do not select
// it. It does not change while the member progresses, which saves writes.
func (m *member) described() string {
	switch m.phase {
	case failed:
		return m.Key + " has failed to roll out"
	case held:
		return m.Key + " is held by annotation"
	default:
		return m.Key + " has the turn"
	}
}

// howFar returns a text with the numbers of a rollout. It contains availability only when
// nothing else is left, which saves a write per Pod.
func (m *member) howFar() string {
	updated := fmt.Sprintf("%d of %d replicas are updated", m.progress(), m.Replicas)
	if m.progress() < m.Replicas {
		return updated
	}
	return fmt.Sprintf("%s, %d available", updated, m.AvailableReplicas)
}
