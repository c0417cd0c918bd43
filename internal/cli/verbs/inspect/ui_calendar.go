// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/schedule"
)

const (
	// calendarAhead is how far the calendar looks ahead.
	calendarAhead = 7 * 24 * time.Hour
	// mostStretches is how many of one schedule are shown, and mostSchedules how many schedules.
	mostStretches = 200
	mostSchedules = 500
)

// calendarPage is when schedules let promotions start.
type calendarPage struct {
	From      metav1.Time        `json:"from"`
	To        metav1.Time        `json:"to"`
	Schedules []calendarSchedule `json:"schedules"`
	Omitted   int                `json:"omitted,omitempty"`
	Problems  []string           `json:"problems,omitempty"`
	// Command lists the freezes in a terminal.
	Command string `json:"command"`
}

// calendarSchedule is a schedule in the calendar.
type calendarSchedule struct {
	Kind        string `json:"kind"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Rollouts is how many it selects; absent if the controller has not counted them yet.
	Rollouts *int32 `json:"rollouts,omitempty"`
	// Problem says why it cannot be evaluated: then it is closed.
	Problem   string            `json:"problem,omitempty"`
	Zone      string            `json:"zone,omitempty"`
	Stretches []calendarStretch `json:"stretches,omitempty"`
	// ClockChanges are when clocks change in its zone.
	ClockChanges []metav1.Time `json:"clockChanges,omitempty"`
}

// calendarStretch is a time in which a schedule is open, or closed.
type calendarStretch struct {
	From metav1.Time `json:"from"`
	// To is the end; absent if there is none.
	To   *metav1.Time `json:"to,omitempty"`
	Open bool         `json:"open,omitempty"`
	// Local is the beginning in the zone of the schedule.
	Local string `json:"local"`
	// Text says because of which rules.
	Text string `json:"text"`
}

// Calendar implements web.Source.
func (p *pages) Calendar(ctx context.Context) (any, error) {
	shown, err := p.shown(ctx)
	if err != nil {
		return nil, err
	}
	now := p.Now().Truncate(time.Second)
	page := calendarPage{From: metav1.NewTime(now), To: metav1.NewTime(now.Add(calendarAhead)), Schedules: []calendarSchedule{}, Command: p.command("freeze", shown)}
	all, err := gather.ClusterSchedules(ctx, p.cluster.Client)
	if err != nil {
		page.Problems = append(page.Problems, fmt.Sprintf("schedules of the whole cluster are not shown: %v", err))
	}
	for _, namespace := range shown {
		own, err := gather.SchedulesIn(ctx, p.cluster.Client, namespace)
		if err != nil {
			page.Problems = append(page.Problems, err.Error())
		}
		all = append(all, own...)
	}
	page.Omitted = max(0, len(all)-mostSchedules)
	for _, s := range all[:len(all)-page.Omitted] {
		page.Schedules = append(page.Schedules, inCalendar(s, page.From.Time, page.To.Time))
	}
	return page, nil
}

// inCalendar returns the stretches of a schedule, as the controller evaluates it.
func inCalendar(s gather.Schedule, from, to time.Time) calendarSchedule {
	c := calendarSchedule{Kind: s.Kind, Namespace: s.GetNamespace(), Name: s.GetName(), Description: promotion.Described(s)}
	if s.Status.ObservedGeneration > 0 {
		c.Rollouts = &s.Status.MatchingRollouts
	}
	if _, problem := s.Evaluate(from); problem != nil {
		c.Problem = problem.Message
		return c
	}
	parsed, err := schedule.Parse(s.Spec)
	if err != nil {
		c.Problem = err.Error()
		return c
	}
	c.Zone = parsed.Zone().String()
	for _, stretch := range parsed.Stretches(from, to, mostStretches) {
		shown := calendarStretch{
			From: metav1.NewTime(stretch.From), Open: stretch.Open, Text: stretch.String(),
			Local: stretch.From.In(parsed.Zone()).Format("Mon 02 Jan 15:04 MST"),
		}
		if !stretch.To.IsZero() {
			shown.To = &metav1.Time{Time: stretch.To}
		}
		c.Stretches = append(c.Stretches, shown)
	}
	for _, change := range parsed.ClockChanges(from, to) {
		c.ClockChanges = append(c.ClockChanges, metav1.NewTime(change))
	}
	return c
}
