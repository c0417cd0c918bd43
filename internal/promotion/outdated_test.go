// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"fmt"
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const adopt = "rollout.kuberik.com/adopt"

// writtenBy returns a target that a promotion has written last.
func writtenBy(id int64, t content.Target) content.Target {
	t.Promotion = id
	return t
}

// restored returns what is left after the status of last night was restored: the history
// ends with #1, and #2 has written 1.1.0 to the targets since.
func restored(rollout *fixture.RolloutBuilder, carried ...string) *situation {
	s := given(rollout.Ledger("1.0.0", "1.1.0", "1.2.0").History(entry("1.0.0").ID(1).Succeeded()))
	return s.targets(writtenBy(2, pending("apps"))).carried(carried...)
}

func TestOutdatedHistoryPromotesNothing(t *testing.T) {
	shop := rollout
	const ends = "the history ends with 1.0.0 (#1), but promotion #2 has written Kustomization shop-prod/apps, and the targets carry "
	const why = ": an old status was restored, so nothing is written; "
	const ways = `annotate the Rollout with rollout.kuberik.com/adopt: "true" to go on from 1.1.0, or set spec.wantedVersion`
	for name, test := range map[string]struct {
		given *situation
		want  string
	}{
		"although a newer release is eligible":     {restored(shop(), "1.1.0"), ends + "1.1.0" + why + ways},
		"although a user lets one go past gates":   {restored(shop().Annotate(bypass, "1.2.0"), "1.1.0"), ends + "1.1.0" + why + ways},
		"although a user unblocks":                 {restored(shop().Annotate(unblock, "true"), "1.1.0"), ends + "1.1.0" + why + ways},
		"although it names the version that runs":  {restored(shop(), "1.0.0"), ends + "1.0.0" + why + `annotate the Rollout with rollout.kuberik.com/adopt: "true" to go on from 1.0.0, or set spec.wantedVersion`},
		"and cannot be adopted if targets differ":  {restored(shop(), "1.0.0", "1.1.0"), ends + "1.0.0, 1.1.0" + why + "set spec.wantedVersion to the right one"},
		"nor if they carry what cannot be a tag":   {restored(shop(), "a tag"), ends + `"a tag"` + why + "set spec.wantedVersion to the right one"},
		"nor if they carry nothing":                {restored(shop()), ends + "no version" + why + "set spec.wantedVersion to the right one"},
		"a pin that was restored with it included": {restored(shop().Pin("1.0.0"), "1.1.0"), ends + "1.1.0" + why + `annotate the Rollout with rollout.kuberik.com/adopt: "true" to deploy 1.0.0, which spec.wantedVersion pins as it did then, or pin another version`},
		"and waits for targets that do not differ": {restored(shop().Annotate(adopt, "true"), "1.0.0", "1.1.0"), ends + "1.0.0, 1.1.0" + why + "set spec.wantedVersion to the right one"},
		"and takes no other word than true":        {restored(shop().Annotate(adopt, "yes"), "1.1.0"), ends + "1.1.0" + why + ways},
		"a rollback included": {
			given(shop().RollsBack().Ledger("1.0.0", "1.1.0").History(entry("1.0.0").ID(1).Failed().Due(v1alpha1.CauseHealthCheckFailed, eleven), entry("0.9.0").ID(0).Succeeded())).
				targets(writtenBy(2, pending("apps"))).carried("1.1.0"), ends + "1.1.0" + why + ways,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, outcome{Action: promotion.Nothing}, outcomeOf(d))
			diff(t, &verdict.Problem{Reason: v1alpha1.HistoryOutdatedReason, Message: test.want}, d.Problem)
			for _, verdict := range d.Candidates {
				diff(t, v1alpha1.HistoryOutdatedReason, verdict.Holds[0].Reason)
			}
			diff(t, []string(nil), d.Consumed)
			diff(t, promotion.Rollback{}, d.Rollback)
		})
	}
}

// What the history says of the current promotion is about another one than what runs.
func TestOutdatedHistoryProvesNothing(t *testing.T) {
	for name, current := range map[string]*fixture.EntryBuilder{
		"while it deploys": entry("1.0.0").ID(1).Deploying(),
		"while it bakes":   entry("1.0.0").ID(1).Baking(eleven),
		"after a failure":  entry("1.0.0").ID(1).Failed(),
	} {
		t.Run(name, func(t *testing.T) {
			moved := writtenBy(2, applied("apps"))
			moved.Moved = "tag 1.0.0 was pushed again"
			in := given(rollout().Ledger("1.0.0").Annotate(retry, "true").BakeTime(1).DeployTimeout(1).SelectAllChecks().History(current)).
				checks(check("db").Unhealthy()).targets(moved).carried("1.1.0").in()
			d := promotion.Decide(in)
			diff(t, outcome{Action: promotion.Nothing}, outcomeOf(d))
			diff(t, v1alpha1.HistoryOutdatedReason, d.Problem.Reason)
			history, err := promotion.Record(in, d)
			if err != nil {
				t.Fatal(err)
			}
			diff(t, in.Rollout.Status.History, history)
			diff(t, []string(nil), d.Consumed)
		})
	}
}

func TestOutdatedHistoryGoesOn(t *testing.T) {
	pinned := func(tag string) outcome {
		return outcome{Action: promotion.Promote, Release: tag, Manual: true, Reason: v1alpha1.PinnedReason, Message: "pinned manually in spec.wantedVersion"}
	}
	adopted := outcome{
		Action: promotion.Adopt, Release: "1.1.0", Reason: v1alpha1.ReleaseAdoptedReason,
		Message: "requested with rollout.kuberik.com/adopt; the targets carry this version",
	}
	for name, test := range map[string]struct {
		given    *situation
		want     outcome
		consumed []string
	}{
		"with a pin of what runs":          {restored(rollout().Pin("1.1.0"), "1.1.0"), pinned("1.1.0"), nil},
		"with a pin of another version":    {restored(rollout().Pin("0.9.0"), "1.1.0"), pinned("0.9.0"), nil},
		"with a pin if targets differ":     {restored(rollout().Pin("1.1.0"), "1.0.0", "1.1.0"), pinned("1.1.0"), nil},
		"with a pin that is confirmed":     {restored(rollout().Pin("1.0.0").Annotate(adopt, "true"), "1.1.0"), pinned("1.0.0"), []string{adopt}},
		"with a pin rather than adoption":  {restored(rollout().Pin("0.9.0").Annotate(adopt, "true"), "1.1.0"), pinned("0.9.0"), []string{adopt}},
		"with what the targets carry":      {restored(rollout().Annotate(adopt, "true"), "1.1.0"), adopted, []string{adopt}},
		"although gates are closed":        {restored(rollout().Annotate(adopt, "true"), "1.1.0").gates(gate("a").Closed()), adopted, []string{adopt}},
		"although policies cannot be read": {restored(rollout().Annotate(adopt, "true"), "1.1.0").policyUnreadable(), adopted, []string{adopt}},
		"with a release that is forced": {
			restored(rollout().Annotate(force, "1.2.0"), "1.1.0"),
			outcome{Action: promotion.Promote, Release: "1.2.0", Manual: true, Reason: v1alpha1.ForcedReason, Message: "requested with rollout.kuberik.com/force-deploy"},
			[]string{force},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.given.in()
			d := promotion.Decide(in)
			diff(t, test.want, outcomeOf(d))
			diff(t, (*verdict.Problem)(nil), d.Problem)
			diff(t, test.consumed, d.Consumed)
			diff(t, 0, len(d.Answers))
			history, err := promotion.Record(in, d)
			if err != nil {
				t.Fatal(err)
			}
			diff(t, noon.Unix(), *history[0].ID)
			diff(t, false, in.Targets.Outdate(history))
		})
	}
}

// The gates that were closed hold what is newer, and the old entry stays as it was.
func TestNormalRulesApplyAfterAnAdoption(t *testing.T) {
	in := restored(rollout().Annotate(adopt, "true"), "1.1.0").gates(gate("manual").Closed()).in()
	for _, want := range []promotion.Action{promotion.Adopt, promotion.FinishBake, promotion.Nothing} {
		d := promotion.Decide(in)
		diff(t, want, d.Action)
		history, err := promotion.Record(in, d)
		if err != nil {
			t.Fatal(err)
		}
		in.Rollout.Status.History, in.Rollout.Annotations = history, nil
		in.Targets = content.Targets{All: []content.Target{writtenBy(2, applied("apps"))}}
	}
	current := in.Rollout.Current()
	diff(t, "1.1.0", current.Version.Tag)
	diff(t, v1alpha1.GroundsAdopted, current.Grounds)
	diff(t, "1.0.0", in.Rollout.Status.History[1].Version.Tag)
	diff(t, map[string][]string{"1.2.0": {v1alpha1.SomeGatesBlockingReason}}, reasons(promotion.Decide(in)))
}

func TestAdoptionThatIsNotNeededIsAnswered(t *testing.T) {
	upToDate := func(current *fixture.EntryBuilder) *situation {
		return given(rollout().Annotate(adopt, "true").Ledger("1.0.0").History(current.ID(2))).targets(writtenBy(2, applied("apps")))
	}
	unneeded := []verdict.Note{{
		Reason: v1alpha1.AdoptNotNeededReason, Message: "there is nothing to adopt: the history is not older than the targets",
	}}
	interrupted := upToDate(entry("1.0.0").Deploying())
	interrupted.input.Rollout.Status.History[0].Grounds = v1alpha1.GroundsAdopted
	for name, test := range map[string]struct {
		given *situation
		want  []verdict.Note
	}{
		"nothing is outdated": {upToDate(entry("1.0.0").Succeeded()), unneeded},
		"nothing is there":    {given(rollout().Annotate(adopt, "true")), unneeded},
		"the controller died before it removed the request": {interrupted, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, []string{adopt}, d.Consumed)
			diff(t, test.want, d.Answers)
		})
	}
	d := promotion.Decide(given(rollout().Annotate(adopt, "yes").Ledger("1.0.0").History(entry("1.0.0").Succeeded())).in())
	diff(t, &verdict.Problem{
		Reason: v1alpha1.InvalidRequestReason, Message: `rollout.kuberik.com/adopt must be "true", not "yes"`,
	}, d.Declined)
	diff(t, []string(nil), d.Consumed)
}

// An adopted release can fail, like any other, and a rollback can answer it.
func TestAdoptionReplacesARunningPromotion(t *testing.T) {
	in := restored(rollout().Annotate(adopt, "true"), "1.0.0").in()
	in.Rollout.Status.History = entries(entry("1.0.0").ID(1).Deploying())
	history, err := promotion.Record(in, promotion.Decide(in))
	if err != nil {
		t.Fatal(err)
	}
	diff(t, v1alpha1.BakeCancelled, history[1].State())
	diff(t, "superseded by a newer promotion of it", *history[1].BakeStatusMessage)
}

// Ids of a lost history must not be given again.
func TestNextIDIsAboveThoseOfTheTargets(t *testing.T) {
	for name, test := range map[string]struct {
		given *situation
		want  int64
	}{
		"of a lost history":                            {given(rollout().Ledger("1.0.0")).owned("1.0.0").targets(writtenBy(41, applied("apps"))), noon.Unix()},
		"of a lost history of another controller":      {given(rollout().Ledger("1.0.0")).owned("1.0.0").targets(applied("apps")), noon.Unix()},
		"of a manifest that was copied to a new place": {given(rollout().Ledger("1.0.0")).targets(writtenBy(41, pending("apps"))), noon.Unix()},
		"of a clock that was ahead then":               {given(rollout().Ledger("1.0.0")).owned("1.0.0").targets(writtenBy(one.Unix(), applied("apps"))), one.Unix() + 1},
		"of a new Rollout":                             {given(rollout().Ledger("1.0.0")).targets(pending("apps")), 1},
		"of none, after a target was restored": {
			given(rollout().Ledger("1.0.0", "1.1.0").History(entry("1.0.0").ID(7).Succeeded())).targets(writtenBy(3, applied("apps"))), 8,
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.given.in()
			history, err := promotion.Record(in, promotion.Decide(in))
			if err != nil {
				t.Fatal(err)
			}
			diff(t, test.want, *history[0].ID)
		})
	}
}

// Anything may happen before a backup is made, and after it. Once the backup is restored,
// only a user changes what runs.
func TestRestoredStatusTakesNothingBackWhateverHappened(t *testing.T) {
	restored := 0
	for _, seed := range seeds(6) {
		t.Run(fmt.Sprintf("with seed %d", seed), func(t *testing.T) {
			w := newWorld(t, anyRollout(random(seed)), random(seed))
			w.targets = append(w.targets, &fluxObject{name: "more"})
			steps := func(n int, people func()) {
				for range n {
					w.step(people)
				}
			}
			steps(20, w.anything)
			backup := w.rollout.DeepCopy().Status
			steps(20, w.anything)
			if w.rollout.Status = backup; !w.isOutdated() {
				return // nothing was promoted in between
			}
			restored++
			w.rollout.Spec.WantedVersion, w.rollout.Annotations = nil, nil
			before, history := []fluxObject{*w.targets[0], *w.targets[1]}, w.describeHistory()
			steps(20, func() { anyOf(w.rng, w.pushAny, w.turnGate, w.allowAny, w.crashSoon, w.losePolicy)() })
			for i, object := range w.targets {
				if object.carries != before[i].carries || object.promotion != before[i].promotion {
					t.Errorf("%s carries %s of #%d, and carried %s of #%d", object.name, object.carries, object.promotion, before[i].carries, before[i].promotion)
				}
			}
			diff(t, history, w.describeHistory())
		})
	}
	if restored == 0 && *onlySeed == 0 {
		t.Error("no old status was restored")
	}
}
