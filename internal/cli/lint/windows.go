// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"time"

	"github.com/fluxrollouts/rollout-controller/internal/schedule"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

const (
	oneDay = 24 * time.Hour
	// horizon is how far schedules are evaluated.
	horizon = 366 * oneDay
	// lookBack is how far back the evaluation begins, so that a window that is open now
	// counts in full length.
	lookBack = 7 * oneDay
	// mostEvaluations is how often schedules are evaluated for one set of them, each for
	// each of its rules.
	mostEvaluations = 1_000_000
)

// opening is when promotions may start.
type opening struct {
	// ever is true if there is a time from now on.
	ever bool
	// always is true if there is no other time.
	always bool
	// longest is the longest window.
	longest time.Duration
	// tooMuch is true if the schedules change too often to evaluate them.
	tooMuch bool
}

// openingOf evaluates schedules together: all of them must be open. It evaluates each set
// of schedules once.
func (s *set) openingOf(objects []*object) opening {
	key := names(objects)
	known, ok := s.openings[key]
	if !ok {
		var all []*schedule.Schedule
		rules := 0
		for _, o := range objects {
			all = append(all, s.parsed(o))
			rules += 1 + len(o.items("spec", "rules")) + len(o.items("spec", "exceptions"))
		}
		known = openingsOf(all, s.now, mostEvaluations/rules)
		s.openings[key] = known
	}
	return known
}

func openingsOf(all []*schedule.Schedule, now time.Time, steps int) opening {
	result := opening{always: true}
	var since time.Time // when the window began; zero if there is none
	end := now.Add(horizon)
	for moment := now.Add(-lookBack); moment.Before(end); steps-- {
		if steps <= 0 {
			return opening{tooMuch: true}
		}
		open, next := evaluate(all, moment, end)
		switch {
		case !open:
			result.always, since = false, time.Time{}
		case since.IsZero():
			since = moment
		}
		if open {
			result.longest = max(result.longest, next.Sub(since))
			result.ever = result.ever || next.After(now)
		}
		moment = next
	}
	return result
}

// evaluate returns whether all schedules are open, and when one of them changes.
func evaluate(all []*schedule.Schedule, at, end time.Time) (open bool, next time.Time) {
	open, next = true, end
	for _, each := range all {
		state := each.At(at)
		open = open && state.Open
		if !state.Next.IsZero() && state.Next.Before(next) {
			next = state.Next
		}
	}
	return open, next
}

func checkNeverOpen(r *report) {
	r.eachOpening(func(rollout *object, schedules []*object, o opening) {
		if !o.ever {
			r.find(at{object: rollout}, fmt.Sprintf("no release of %s can be promoted in the next 366 days: %s", rollout, together(schedules)),
				"change the rules, or the labels by which the schedules select the Rollout")
		}
	})
}

func together(schedules []*object) string {
	var all []string
	for _, o := range schedules {
		all = append(all, o.String())
	}
	if len(all) == 1 {
		return all[0] + " is never open"
	}
	return truncate.List(all) + " are never open together"
}

func checkBakeTime(r *report) {
	r.eachOpening(func(rollout *object, schedules []*object, o opening) {
		where := at{rollout, []string{"spec", "bakeTime"}}
		bake, err := time.ParseDuration(rollout.text(where.path...))
		if err != nil || !o.ever || o.always || bake <= o.longest {
			return
		}
		r.find(where, fmt.Sprintf("spec.bakeTime is %s, and promotions may start for at most %s at a time (%s): no bake ends in the window in which it began",
			bake, o.longest, names(schedules)), "shorten the bake, or lengthen the windows")
	})
}

// eachOpening visits the Rollouts that schedules apply to.
func (r *report) eachOpening(visit func(rollout *object, schedules []*object, o opening)) {
	for _, rollout := range r.byKind[rolloutKind] {
		schedules := r.schedulesOf(rollout)
		if len(schedules) == 0 {
			continue
		}
		o := r.openingOf(schedules)
		if o.tooMuch {
			r.skip(at{object: rollout}, "its schedules change too often to evaluate them")
			continue
		}
		visit(rollout, schedules, o)
	}
}
