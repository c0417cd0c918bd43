// SPDX-License-Identifier: Apache-2.0

package fieldconflict_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/internal/fieldconflict"
)

const (
	second = time.Second
	minute = time.Minute
	hour   = time.Hour
)

var (
	noon    = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	applier = fieldconflict.Manager{Message: "taken by kustomize-controller", Known: true, Applies: true}
	editor  = fieldconflict.Manager{Message: "taken by kubectl-edit", Known: true}
	nobody  = fieldconflict.Manager{Message: "removed"}
)

// step is something that happens to a field, some time after the step before.
type step func(c *fieldconflict.Conflict, now time.Time)

func promoted() step {
	return func(c *fieldconflict.Conflict, _ time.Time) { c.Promoted() }
}

func wrote(version string) step {
	return func(c *fieldconflict.Conflict, now time.Time) { c.Wrote(version, now) }
}

func overwritten(by fieldconflict.Manager) step {
	return func(c *fieldconflict.Conflict, now time.Time) { c.Overwritten(by, now) }
}

func kept() step {
	return func(c *fieldconflict.Conflict, now time.Time) { c.Kept(now) }
}

// after is a step and when it happens.
type after struct {
	time time.Duration
	step step
}

// lostTimes is a field that is overwritten after so long, so often, and restored as soon
// as that is allowed.
func lostTimes(times int, soon time.Duration, by fieldconflict.Manager) []after {
	steps := []after{{0, wrote("1.0.0")}}
	for range times {
		steps = append(steps, after{soon, overwritten(by)}, after{time.Hour, wrote("1.0.0")})
	}
	return steps[:len(steps)-1]
}

func TestConflict(t *testing.T) {
	// state is what a Conflict says after the last step. Times count from that step.
	type state struct {
		Message  string
		Lost     bool
		MayWrite bool
		Next     time.Duration // from the last step; zero is never
	}
	contested := func(by fieldconflict.Manager, next time.Duration) state {
		return state{Message: by.Message, Lost: true, MayWrite: next <= 0, Next: next}
	}
	free := state{MayWrite: true}
	for name, tt := range map[string]struct {
		steps []after
		want  state
	}{
		"nothing happened": {want: free},
		"a field that was restored once is free": {
			steps: []after{{0, wrote("1.0.0")}}, want: free,
		},
		"an applier within two hours contests it": {
			steps: []after{{0, wrote("1.0.0")}, {2 * hour, overwritten(applier)}}, want: contested(applier, 30*second-2*hour),
		},
		"an applier after two hours does not": {
			steps: []after{{0, wrote("1.0.0")}, {2*hour + 1, overwritten(applier)}}, want: free,
		},
		"a user within ten minutes contests it": {
			steps: []after{{0, wrote("1.0.0")}, {10 * minute, overwritten(editor)}}, want: contested(editor, 30*second-10*minute),
		},
		"a user after ten minutes does not": {
			steps: []after{{0, wrote("1.0.0")}, {10*minute + 1, overwritten(editor)}}, want: free,
		},
		"a field that somebody removes at once is contested by nobody that is known": {
			steps: []after{{0, wrote("1.0.0")}, {second, overwritten(nobody)}}, want: contested(nobody, 29*second),
		},
		"the first pause is 30 s":            {steps: lostTimes(1, second, applier), want: contested(applier, 29*second)},
		"the second pause is a minute":       {steps: lostTimes(2, second, applier), want: contested(applier, 59*second)},
		"the third pause is two minutes":     {steps: lostTimes(3, second, applier), want: contested(applier, 2*minute-second)},
		"the fifth pause is eight minutes":   {steps: lostTimes(5, second, applier), want: contested(applier, 8*minute-second)},
		"the sixth pause is ten minutes":     {steps: lostTimes(6, second, applier), want: contested(applier, 10*minute-second)},
		"the hundredth pause is ten minutes": {steps: lostTimes(100, second, applier), want: contested(applier, 10*minute-second)},
		"to be overwritten again before the next write does not count twice": {
			steps: append(lostTimes(1, second, applier), after{second, overwritten(editor)}), want: contested(editor, 28*second),
		},
		"after a write the proof is the longest time so far, a quarter, and 30 s": {
			steps: append(lostTimes(1, 4*minute, applier), after{0, wrote("1.0.0")}),
			want:  state{Message: applier.Message, MayWrite: false, Next: 5*minute + 30*second},
		},
		"a value that stays shorter proves nothing": {
			steps: append(lostTimes(1, 4*minute, applier), after{0, wrote("1.0.0")}, after{5*minute + 29*second, kept()}),
			want:  state{Message: applier.Message, MayWrite: true, Next: second},
		},
		"a value that stays longer ends the conflict": {
			steps: append(lostTimes(1, 4*minute, applier), after{0, wrote("1.0.0")}, after{5*minute + 30*second, kept()}),
			want:  free,
		},
		"a value that is there without a write ends it: the other manager agrees": {
			steps: append(lostTimes(1, second, applier), after{second, kept()}), want: free,
		},
		"a field that its manager gave up is free at once": {
			steps: append(lostTimes(3, second, applier), after{second, overwritten(nobody)}), want: free,
		},
		"a field that nobody owned stays contested when nobody owns it": {
			steps: append(lostTimes(1, second, nobody), after{30 * second, wrote("1.0.0")}, after{second, overwritten(nobody)}),
			want:  contested(nobody, 59*second),
		},
		"a conflict that has ended begins anew within its time": {
			steps: append(lostTimes(4, second, applier), after{second, kept()}, after{second, overwritten(applier)}),
			want:  contested(applier, 27*second),
		},
		"another version may be written at once": {
			steps: append(lostTimes(9, second, applier), after{second, promoted()}, after{0, wrote("1.1.0")}, after{second, overwritten(applier)}),
			want:  contested(applier, 10*minute-second),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, c, now := NewWithT(t), &fieldconflict.Conflict{}, noon
			for _, s := range tt.steps {
				now = now.Add(s.time)
				s.step(c, now)
			}
			got := state{Message: c.Message(), Lost: c.Lost(), MayWrite: c.MayWrite("1.0.0", now)}
			if c.Version() != "" {
				got.MayWrite = c.MayWrite(c.Version(), now)
			}
			if next := c.Next(); !next.IsZero() {
				got.Next = next.Sub(now)
			}
			g.Expect(got).To(Equal(tt.want))
		})
	}
}

func TestConflictForgetsTheFirstWriteOfAPromotion(t *testing.T) {
	g, c := NewWithT(t), &fieldconflict.Conflict{}
	c.Promoted()
	g.Expect(c.IsWritten("1.0.0")).To(BeFalse())
	g.Expect(c.Wrote("1.0.0", noon)).To(BeFalse(), "it restores nothing")

	c = &fieldconflict.Conflict{}
	g.Expect(c.Wrote("1.0.0", noon)).To(BeTrue(), "a field that was changed was restored")
	g.Expect(c.IsWritten("1.0.0")).To(BeTrue())
	g.Expect(c.IsWritten("1.1.0")).To(BeFalse())
	c.Overwritten(applier, noon.Add(second))
	c.Promoted()
	g.Expect(c.IsWritten("1.0.0")).To(BeFalse())
	g.Expect(c.MayWrite("1.1.0", noon.Add(second))).To(BeTrue())
	g.Expect(c.Wrote("1.1.0", noon.Add(second))).To(BeTrue(), "it is contested")
}

func TestConflictResumesAfterARestartWithAPause(t *testing.T) {
	g, c := NewWithT(t), fieldconflict.Resume("1.0.0", applier.Message, noon)
	g.Expect(c.Message()).To(Equal(applier.Message))
	g.Expect(c.MayWrite("1.0.0", noon)).To(BeFalse())
	g.Expect(c.MayWrite("1.0.0", noon.Add(30*second))).To(BeTrue())
	g.Expect(c.Next()).To(Equal(noon.Add(13*minute)), "ten minutes, a quarter of them, and 30 s")
	c.Overwritten(nobody, noon.Add(second))
	g.Expect(c.Message()).To(BeEmpty(), "its manager was known by name, and gave the field up")
}

func TestConflictWithoutOneAllowsEveryWrite(t *testing.T) {
	var none *fieldconflict.Conflict
	NewWithT(t).Expect(none.MayWrite("1.0.0", noon)).To(BeTrue())
}

// However a field is fought for: a contested field is never written twice within the
// shortest pause, and whoever waits for Next finds that something has changed.
func TestConflictKeepsItsPausesWhateverHappens(t *testing.T) {
	managers := []fieldconflict.Manager{applier, editor, nobody}
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 0))
		c, now, last := &fieldconflict.Conflict{}, noon, time.Time{}
		var log []string
		for range 40 {
			now = now.Add(time.Duration(random.IntN(900)) * second)
			switch random.IntN(4) {
			case 0:
				c.Overwritten(managers[random.IntN(len(managers))], now)
			case 1:
				c.Kept(now)
			default:
				if !c.MayWrite("1.0.0", now) {
					continue
				}
				if c.Message() != "" && now.Sub(last) < fieldconflict.ShortestPause {
					t.Fatalf("seed %d: written after %s: %v", seed, now.Sub(last), log)
				}
				c.Wrote("1.0.0", now)
				last = now
			}
			log = append(log, fmt.Sprintf("%s %q", now.Sub(noon), c.Message()))
			checkNext(t, seed, *c, log)
		}
	}
}

// checkNext expects that at Next a lost field may be written, and that a kept one has
// proved that the other manager is gone.
func checkNext(t *testing.T, seed uint64, c fieldconflict.Conflict, log []string) {
	t.Helper()
	next := c.Next()
	switch {
	case c.Message() == "":
		if !next.IsZero() {
			t.Fatalf("seed %d: nothing is contested, and yet it waits until %s: %v", seed, next, log)
		}
	case c.Lost():
		if !c.MayWrite(c.Version(), next) || c.MayWrite(c.Version(), next.Add(-1)) {
			t.Fatalf("seed %d: it may not be written first at %s: %v", seed, next, log)
		}
	default:
		early := c
		early.Kept(next.Add(-1))
		c.Kept(next)
		if early.Message() == "" || c.Message() != "" {
			t.Fatalf("seed %d: it has not ended first at %s: %v", seed, next, log)
		}
	}
}
