// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// An explanation says what the engine says, whatever the input: the verdict of each
// candidate, and the effect of each remedy.
func TestExplanationIsTheDecision(t *testing.T) {
	seed := *onlySeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	rng, all := random(seed), explained{}
	for i := range 1000 * *more {
		all.check(t, fmt.Sprintf("input %d with seed %d", i, seed), anyInput(rng))
	}
	all.checkCovered(t)
}

func TestExplanationIsTheDecisionInEveryScenario(t *testing.T) {
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) {
			w, people, done := scenario.begin(t, nil)
			w.watched = func() { (&explained{}).check(t, fmt.Sprintf("iteration %d", w.iteration), w.gather()) }
			w.runUntil(1000, people, done)
		})
	}
}

// anyInput returns an input of FuzzDecide, with any of the requests of FuzzRequests.
func anyInput(rng *rand.Rand) promotion.Input {
	data := make([]byte, rng.IntN(160))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	d := &dice{data}
	in := d.input()
	for _, key := range requests {
		if rng.IntN(4) == 0 {
			in.Rollout.Annotations = with(in.Rollout.Annotations, key, []string{"true", "1.1.0", "1.2.0", "2.0.0", "hotfix"}[rng.IntN(5)])
		}
	}
	return in
}

// explained counts what was compared, so that a comparison of nothing fails.
type explained struct{ candidates, promoting, partial int }

func (e *explained) check(t *testing.T, what string, in promotion.Input) {
	t.Helper()
	before := copyInput(in)
	d := promotion.Decide(in)
	seen := map[string]bool{}
	for i := range d.Candidates {
		verdict := d.Candidates[i]
		if seen[verdict.Release.Tag] {
			t.Errorf("%s: %s is a candidate twice", what, verdict.Release.Tag)
		}
		seen[verdict.Release.Tag] = true
		e.candidates++
		want := promotion.Standing{Position: promotion.Candidate, Verdict: &verdict, Entry: newest(in, verdict.Release.Tag)}
		if got := promotion.StandingOf(in, d, verdict.Release.Tag); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s stands as %+v, want %+v", what, verdict.Release.Tag, got, want)
		}
		if !verdict.Eligible() {
			e.checkRemedies(t, what, in, verdict)
		}
	}
	if !reflect.DeepEqual(before, in) {
		t.Errorf("%s: it was modified", what)
	}
}

// checkRemedies decides again with each remedy: the candidate is promoted at once, or the
// holds are left that it says.
func (e *explained) checkRemedies(t *testing.T, what string, in promotion.Input, held promotion.Verdict) {
	t.Helper()
	remedies := explain.Remedies(in, held, explain.User{})
	for i, remedy := range remedies {
		asked := fmt.Sprintf("%s: %s, after %s %v", what, held.Release.Tag, remedy.Request.Verb, remedy.Request.Args)
		d := promotion.Decide(remedy.Request.Apply(in))
		if goes := d.Action.Promotes() && d.Release.Tag == held.Release.Tag; goes != remedy.Promotes {
			t.Errorf("%s: the engine does %s %s, and it says that it promotes: %t", asked, d.Action, d.Release.Tag, remedy.Promotes)
		}
		switch {
		case remedy.Promotes && remedy.Request.Quarantine == "" && i < len(remedies)-1:
			t.Errorf("%s: it goes, nobody else does, and there are more remedies", asked)
		case remedy.Promotes:
			e.promoting++
		default:
			e.partial++
			if left := leftBy(d, held.Release.Tag); len(left) == 0 || !reflect.DeepEqual(left, remedy.Left) {
				t.Errorf("%s: it is held by %+v, and it says %+v", asked, left, remedy.Left)
			}
		}
	}
}

func (e *explained) checkCovered(t *testing.T) {
	t.Helper()
	if e.candidates < 500**more || e.promoting < 300**more || e.partial < 300**more {
		t.Errorf("too little was compared: %+v", *e)
	}
}

// leftBy returns what holds a release: of one that a user has chosen and that waits, what it
// waits for.
func leftBy(d promotion.Decision, tag string) []verdict.Hold {
	if d.Awaited != nil && d.Awaited.Release.Tag == tag {
		return d.Awaited.Holds
	}
	for _, verdict := range d.Candidates {
		if verdict.Release.Tag == tag {
			return verdict.Holds
		}
	}
	return nil
}

func newest(in promotion.Input, tag string) *v1alpha1.DeploymentHistoryEntry {
	for i := range in.Rollout.Status.History {
		if in.Rollout.Status.History[i].Version.Tag == tag {
			return &in.Rollout.Status.History[i]
		}
	}
	return nil
}
