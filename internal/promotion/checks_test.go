// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// upgrade returns a healthy environment that runs 1.0.0 while 1.1.0 is available.
func upgrade() *fixture.RolloutBuilder {
	return rollout().Ledger("1.0.0", "1.1.0").History(entry("1.0.0").Succeeded())
}

func TestEachCheckAlone(t *testing.T) {
	failedBefore := verdict.Hold{
		Reason:  v1alpha1.FailedBeforeReason,
		Message: "1.1.0 failed here before; pin it, or annotate the Rollout with unblock-failed, to try it again",
	}
	for name, test := range map[string]struct {
		given *situation
		want  []verdict.Hold
	}{
		"nothing holds a release without a reason": {given(upgrade()), nil},

		"a pin to the current version holds all others": {
			given(upgrade().Pin("1.0.0")),
			[]verdict.Hold{{
				Reason:  v1alpha1.PinnedReason,
				Message: "spec.wantedVersion pins 1.0.0; remove it to resume automatic promotions",
			}},
		},
		"a pin to the candidate does not hold it": {given(upgrade().Pin("1.1.0")), nil},
		"an empty pin is none":                    {given(upgrade().Pin("")), nil},
		"a pin that can be no tag holds everything": {
			given(upgrade().Pin("1.1.0+build")),
			[]verdict.Hold{{
				Reason:  v1alpha1.InvalidWantedVersionReason,
				Message: `spec.wantedVersion "1.1.0+build" cannot be a tag in an OCI registry: correct or remove it`,
			}},
		},

		"a policy that cannot be used holds": {
			given(upgrade()).policyUnreadable(),
			[]verdict.Hold{{Reason: "Broken", Message: "it is broken"}},
		},
		"a policy that complains but still names a release does not": {
			given(upgrade()).latestWithComplaint("1.1.0"), nil,
		},

		"a policy that names no release holds": {
			given(upgrade()).namesNothing(),
			[]verdict.Hold{{Reason: v1alpha1.NotOfferedReason, Message: "ImagePolicy shop names no release at present"}},
		},
		"a release that was withdrawn is held": {
			given(upgrade()).latest("1.0.0"),
			[]verdict.Hold{{Reason: v1alpha1.NotOfferedReason, Message: "ImagePolicy shop now names 1.0.0, which is older"}},
		},
		"a release older than the named one is offered, but superseded": {
			given(upgrade()).latest("1.2.0"),
			[]verdict.Hold{{Reason: v1alpha1.SupersededReason, Message: "1.2.0 is newer and eligible"}},
		},
		"what cannot be compared counts as offered": {given(upgrade()).ranked(byAppearance).latest("1.1.0"), nil},

		"tags that are not known hold what goes one by one": {
			given(upgrade().Strategy(v1alpha1.ReleaseNext)).partial("they are being listed"),
			[]verdict.Hold{{Reason: v1alpha1.TagsUnknownReason,
				Message: "the next release is not known, because not all tags of the registry are known: they are being listed"}},
		},
		"and do not hold the newest": {given(upgrade()).partial("they are being listed"), nil},
		"nor where tags have no versions": {
			given(upgrade().Strategy(v1alpha1.ReleaseNext)).ranked(byAppearance).latest("1.1.0").partial("they are being listed"), nil,
		},
		"a release that failed here is held": {
			given(rollout().Ledger("1.0.0", "1.1.0").History(entry("1.0.0").Succeeded(), entry("1.1.0").Failed())),
			[]verdict.Hold{failedBefore},
		},
		"its newest failure counts, not the success before": {
			given(rollout().Ledger("1.0.0", "1.1.0").
				History(entry("1.0.0").Succeeded(), entry("1.1.0").Failed(), entry("1.1.0").Succeeded())),
			[]verdict.Hold{failedBefore},
		},
		"a success after the failure frees it": {
			given(rollout().Ledger("1.0.0", "1.1.0").
				History(entry("1.0.0").Succeeded(), entry("1.1.0").Succeeded(), entry("1.1.0").Failed())),
			nil,
		},
		"a cancelled promotion is no failure": {
			given(rollout().Ledger("1.0.0", "1.1.0").History(entry("1.0.0").Succeeded(), entry("1.1.0").Cancelled())), nil,
		},
		"the failure of another release does not hold it": {
			given(rollout().Ledger("1.0.0", "1.1.0").History(entry("1.0.0").Succeeded(), entry("0.9.0").Failed())), nil,
		},

		"a deploying release holds the next": {
			given(rollout().BakeTime(time.Hour).Ledger("1.0.0", "1.1.0").History(entry("1.0.0").Deploying())).targets(pending("apps")),
			[]verdict.Hold{{Reason: v1alpha1.BakeRunningReason, Message: "1.0.0 is still Deploying"}},
		},
		"a baking release holds the next": {
			given(rollout().BakeTime(2*time.Hour).Ledger("1.0.0", "1.1.0").History(entry("1.0.0").Baking(eleven))),
			[]verdict.Hold{{Reason: v1alpha1.BakeRunningReason, Message: "1.0.0 is still InProgress"}},
		},
		"a state that nobody knows is final": {
			given(rollout().BakeTime(time.Hour).Ledger("1.0.0", "1.1.0").History(entry("1.0.0").State("Pending"))), nil,
		},
		"no state is final": {
			given(rollout().BakeTime(time.Hour).Ledger("1.0.0", "1.1.0").History(entry("1.0.0"))), nil,
		},

		"a failed release holds the next": {
			given(rollout().Ledger("1.0.0", "1.1.0").History(entry("1.0.0").Failed())),
			[]verdict.Hold{{
				Reason:  v1alpha1.PreviousBakeFailedReason,
				Message: "the bake of 1.0.0 failed; to continue, pin a version, or annotate the Rollout with retry or unblock-failed",
			}},
		},
		"a cancelled release does not hold the next": {
			given(rollout().Ledger("1.0.0", "1.1.0").History(entry("1.0.0").Cancelled())), nil,
		},

		"an Unhealthy check holds, one of many too": {
			given(upgrade()).checks(check("db").Healthy(), check("smoke").Unhealthy(), check("web").Pending()),
			[]verdict.Hold{{Reason: v1alpha1.UnhealthyHealthChecksReason, Message: "Unhealthy: HealthCheck shop-prod/smoke"}},
		},
		"all Unhealthy checks are named": {
			given(upgrade()).checks(check("db").Unhealthy(), check("smoke").InNamespace("tests").Unhealthy()),
			[]verdict.Hold{{
				Reason:  v1alpha1.UnhealthyHealthChecksReason,
				Message: "Unhealthy: HealthCheck shop-prod/db, HealthCheck tests/smoke",
			}},
		},
		"Pending and silent checks do not hold": {given(upgrade()).checks(check("db").Pending(), check("smoke")), nil},
		"an old error of a Healthy check does not hold": {
			given(upgrade()).checks(check("db").Healthy().ErrorAt(eleven)), nil,
		},
		"checks that cannot be read hold": {
			given(upgrade()).healthUnreadable(), []verdict.Hold{{Reason: "Broken", Message: "it is broken"}},
		},

		"the interval since the last promotion holds until it is over": {
			given(upgrade().ReleaseUpdateInterval(90 * time.Minute)),
			[]verdict.Hold{{
				Reason:  v1alpha1.ReleaseIntervalReason,
				Message: "spec.releaseUpdateInterval allows the next promotion at 2026-03-02T12:30:00Z",
				Until:   noon.Add(30 * time.Minute),
			}},
		},
		"an instant before the interval is over it still holds": {
			given(upgrade().ReleaseUpdateInterval(time.Hour)).at(noon.Add(-instant)),
			[]verdict.Hold{{
				Reason:  v1alpha1.ReleaseIntervalReason,
				Message: "spec.releaseUpdateInterval allows the next promotion at 2026-03-02T12:00:00Z",
				Until:   noon,
			}},
		},
		"an interval with a fraction of a second ends with the second, as the wire can say it": {
			given(upgrade().ReleaseUpdateInterval(time.Hour + time.Millisecond)),
			[]verdict.Hold{{
				Reason:  v1alpha1.ReleaseIntervalReason,
				Message: "spec.releaseUpdateInterval allows the next promotion at 2026-03-02T12:00:01Z",
				Until:   noon.Add(time.Second),
			}},
		},
		"the interval is over at its end": {given(upgrade().ReleaseUpdateInterval(time.Hour)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []verdict.Hold
			for _, verdict := range promotion.Decide(test.given.in()).Candidates {
				if verdict.Release.Tag == "1.1.0" {
					got = verdict.Holds
				}
			}
			diff(t, test.want, got)
		})
	}
}

func (s *situation) latestWithComplaint(tag string) *situation {
	s.latest(tag)
	s.input.Policy.Problem = broken
	return s
}

func TestReleaseThatWasWithdrawnIsNoCandidate(t *testing.T) {
	between := func() *fixture.RolloutBuilder {
		return rollout().Ledger("1.0.0", "1.1.0", "1.2.0").History(entry("1.0.0").Succeeded())
	}
	for name, test := range map[string]struct {
		given *situation
		want  []string
	}{
		"deleted, and older than the latest":         {given(between()).registryHas("1.0.0", "1.2.0"), []string{"1.2.0"}},
		"deleted, and newer than the latest":         {given(between()).latest("1.1.0").registryHas("1.0.0", "1.1.0"), []string{"1.1.0"}},
		"allowed by a gate, and deleted":             {given(between()).registryHas("1.2.0").gates(gate("qa").Allow("1.1.0")), []string{"1.2.0"}},
		"named by the policy after the scan we know": {given(between()).registryHas("1.0.0", "1.1.0"), []string{"1.2.0", "1.1.0"}},
		"the scan shows some of the tags":            {given(between()).scanned("1.2.0"), []string{"1.2.0", "1.1.0"}},
		"pushed again":                               {given(between()).registryHas("1.0.0", "1.2.0", "1.1.0"), []string{"1.2.0", "1.1.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, tagsJudged(promotion.Decide(test.given.in())))
		})
	}
	first := promotion.Decide(given(rollout().Ledger("1.0.0", "1.1.0", "1.2.0")).registryHas("1.0.0", "1.2.0").gates(gate("qa").Allow("1.1.0")).in())
	diff(t, promotion.Nothing, first.Action) // it is not the first release of an environment either
}

func tagsJudged(d promotion.Decision) []string {
	var tags []string
	for _, verdict := range d.Candidates {
		tags = append(tags, verdict.Release.Tag)
	}
	return tags
}

// The history cannot be ranked by the policy: the environment began with a custom build,
// or a team has changed the scheme of its tags.
func TestNothingGoesBackwardWithoutAPosition(t *testing.T) {
	unranked := func() *fixture.RolloutBuilder {
		return rollout().Ledger("1.0.0", "1.1.0", "1.2.0").History(entry("hotfix-bob").Succeeded())
	}
	cannot := "ImagePolicy shop cannot rank any release of the history"
	unknown, only := cannot+", so the next one is not known: pin the release to continue from",
		cannot+": only 1.2.0, the newest, is promoted automatically; pin another one to deploy it"
	for name, test := range map[string]struct {
		rollout *fixture.RolloutBuilder
		want    string
		holds   map[string]string
	}{
		"Next has none": {unranked().Strategy(v1alpha1.ReleaseNext), "Nothing",
			map[string]string{"1.2.0": unknown, "1.1.0": unknown, "1.0.0": unknown}},
		"Next goes on from a pin": {unranked().Strategy(v1alpha1.ReleaseNext).History(entry("1.0.0").Succeeded(), entry("hotfix-bob").Succeeded()),
			"Promote 1.1.0", map[string]string{"1.2.0": "spec.releaseStrategy takes 1.1.0 first"}},
		"Newest takes the newest": {unranked(), "Promote 1.2.0", map[string]string{"1.1.0": only, "1.0.0": only}},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(given(test.rollout).in())
			diff(t, test.want, settledBy(d).Does)
			diff(t, test.holds, holdsOf(d))
		})
	}
	gated := promotion.Decide(given(unranked()).gates(gate("qa").Allow("1.0.0")).in())
	diff(t, promotion.Nothing, gated.Action) // a gate that lists an old release does not bring it back
}

// holdsOf returns the last hold of each candidate that has one.
func holdsOf(d promotion.Decision) map[string]string {
	holds := map[string]string{}
	for _, verdict := range d.Candidates {
		if n := len(verdict.Holds); n > 0 {
			holds[verdict.Release.Tag] = verdict.Holds[n-1].Message
		}
	}
	return holds
}

func TestReasonsAreReportedInOrder(t *testing.T) {
	// The worst case: every possible reason holds 1.1.0.
	in := given(rollout().Pin("1.0.0").ReleaseUpdateInterval(2*time.Hour).Ledger("1.0.0", "1.1.0").
		History(entry("1.0.0").Failed(), entry("1.1.0").Failed())).
		latest("1.0.0").policyUnreadable().
		checks(check("db").Unhealthy()).
		gates(gate("manual").Closed(), gate("qa").Allow()).schedules(closedUntil(never, "nights"), promotion.Window{Problem: broken}).in()
	verdict := promotion.Decide(in).Candidates[0]
	var got []string
	for _, hold := range verdict.Holds {
		got = append(got, hold.Reason)
	}
	diff(t, []string{
		v1alpha1.PinnedReason, "Broken", v1alpha1.NotOfferedReason, v1alpha1.FailedBeforeReason, v1alpha1.PreviousBakeFailedReason,
		v1alpha1.UnhealthyHealthChecksReason, v1alpha1.SomeGatesBlockingReason, v1alpha1.NoAllowedVersionsReason,
		v1alpha1.InvalidScheduleReason, v1alpha1.ScheduleClosedReason, v1alpha1.ReleaseIntervalReason,
	}, got)
	if verdict.Eligible() || !verdict.HeldBy("Other", v1alpha1.PinnedReason) || verdict.HeldBy("Other") || !verdict.HeldByGates() {
		t.Error("the verdict must answer for the holds that it lists")
	}
	in.Rollout.Annotations = map[string]string{v1alpha1.BypassGatesAnnotation: "1.1.0"}
	if left := promotion.Decide(in).Candidates[0]; left.HeldByGates() || len(left.Holds) != len(got)-4 {
		t.Errorf("a bypass must lift what is of gates, and nothing else: %v", left.Holds)
	}
}

func TestChosenCandidate(t *testing.T) {
	three := func() *fixture.RolloutBuilder {
		return rollout().Ledger("1.0.0", "1.1.0", "1.2.0", "1.3.0").History(entry("1.0.0").Succeeded())
	}
	superseded := []string{v1alpha1.SupersededReason}
	for name, test := range map[string]struct {
		given   *situation
		want    outcome
		reasons map[string][]string
	}{
		"the newest, and the others are superseded": {
			given(three()),
			outcome{Action: promotion.Promote, Release: "1.3.0", Reason: v1alpha1.EligibleReason, Message: "the newest eligible release of ImagePolicy shop"},
			map[string][]string{"1.3.0": {}, "1.2.0": superseded, "1.1.0": superseded},
		},
		"the newest that nothing holds": {
			given(three()).gates(gate("qa").Allow("1.1.0", "1.2.0")),
			outcome{Action: promotion.Promote, Release: "1.2.0", Reason: v1alpha1.EligibleReason, Message: "the newest eligible release of ImagePolicy shop"},
			map[string][]string{"1.3.0": {v1alpha1.NoAllowedVersionsReason}, "1.2.0": {}, "1.1.0": superseded},
		},
		"one that is held for its own reason is not called superseded": {
			given(three()).gates(gate("qa").Allow("1.1.0", "1.3.0")),
			outcome{Action: promotion.Promote, Release: "1.3.0", Reason: v1alpha1.EligibleReason, Message: "the newest eligible release of ImagePolicy shop"},
			map[string][]string{"1.3.0": {}, "1.2.0": {v1alpha1.NoAllowedVersionsReason}, "1.1.0": superseded},
		},
		"none, when all are held": {
			given(three()).gates(gate("qa").Allow()),
			outcome{Action: promotion.Nothing},
			map[string][]string{
				"1.3.0": {v1alpha1.NoAllowedVersionsReason}, "1.2.0": {v1alpha1.NoAllowedVersionsReason}, "1.1.0": {v1alpha1.NoAllowedVersionsReason},
			},
		},
		"none within the interval, but the time to look again is given": {
			given(three().ReleaseUpdateInterval(2 * time.Hour)),
			outcome{Action: promotion.Nothing, RecheckAt: one},
			map[string][]string{
				"1.3.0": {v1alpha1.ReleaseIntervalReason}, "1.2.0": {v1alpha1.ReleaseIntervalReason}, "1.1.0": {v1alpha1.ReleaseIntervalReason},
			},
		},
		"none when up to date": {
			given(rollout().Ledger("1.0.0").History(entry("1.0.0").Succeeded())),
			outcome{Action: promotion.Nothing}, map[string][]string{},
		},
		"none when the newest tag vanished and it was deployed": {
			given(rollout().Ledger("1.0.0", "1.1.0").History(entry("1.1.0").Succeeded())).latest("1.0.0"),
			outcome{Action: promotion.Nothing}, map[string][]string{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.want, outcomeOf(d))
			diff(t, test.reasons, reasons(d))
		})
	}
}

func TestPinnedReleaseIsPromoted(t *testing.T) {
	pinned := func(action promotion.Action, tag string) outcome {
		return outcome{
			Action: action, Release: tag, Manual: true, Reason: v1alpha1.PinnedReason, Message: "pinned manually in spec.wantedVersion",
		}
	}
	for name, test := range map[string]struct {
		given *situation
		want  outcome
	}{
		"an older release: a rollback": {
			given(rollout().Pin("1.0.0").Ledger("1.0.0", "1.1.0").History(entry("1.1.0").Failed(), entry("1.0.0").Succeeded())),
			pinned(promotion.Promote, "1.0.0"),
		},
		"a release that nobody knows": {given(upgrade().Pin("hotfix-bob")), pinned(promotion.Promote, "hotfix-bob")},
		"past gates, schedules, health, the interval and a quarantine": {
			given(rollout().Pin("1.1.0").ReleaseUpdateInterval(24*time.Hour).Ledger("1.0.0", "1.1.0").
				History(entry("1.0.0").Failed(), entry("1.1.0").Failed())).
				gates(gate("manual").Closed()).schedules(closedUntil(never, "nights")).checks(check("db").Unhealthy()),
			withRecheck(pinned(promotion.Promote, "1.1.0"), eleven.Add(24*time.Hour)),
		},
		"although nothing can be read": {
			given(upgrade().Pin("1.1.0")).policyUnreadable().gatesUnreadable().healthUnreadable().targetsUnreadable(),
			pinned(promotion.Promote, "1.1.0"),
		},
		"in place of a running bake": {
			given(rollout().Pin("1.0.0").BakeTime(time.Hour).Ledger("1.0.0", "1.1.0").History(entry("1.1.0").Baking(noon), entry("1.0.0").Succeeded())),
			pinned(promotion.Supersede, "1.0.0"),
		},
		"as the first release": {given(rollout().Pin("1.0.0").Ledger("1.0.0", "1.1.0")), pinned(promotion.Promote, "1.0.0")},
		"although a lost history left targets that disagree": {
			given(rollout().Pin("1.0.0").Ledger("1.0.0", "1.1.0")).owned("1.0.0", "1.1.0"), pinned(promotion.Promote, "1.0.0"),
		},
		"but not again once it is current":        {given(upgrade().Pin("1.0.0")), outcome{Action: promotion.Nothing}},
		"and nothing for an empty string":         {given(rollout().Pin("").Ledger("1.0.0").History(entry("1.0.0").Succeeded())), outcome{Action: promotion.Nothing}},
		"and nothing for what cannot be a tag":    {given(upgrade().Pin("no tag")), outcome{Action: promotion.Nothing}},
		"not even as the first release":           {given(rollout().Pin("no tag").Ledger("1.0.0")), outcome{Action: promotion.Nothing}},
		"nor again after it failed while current": {given(rollout().Pin("1.1.0").Ledger("1.1.0").History(entry("1.1.0").Failed())), outcome{Action: promotion.Nothing}},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, outcomeOf(promotion.Decide(test.given.in())))
		})
	}
}

func withRecheck(o outcome, at time.Time) outcome {
	o.RecheckAt = at
	return o
}

func TestPinTakesWhatTheLedgerKnows(t *testing.T) {
	known := release("1.0.0").Digest("sha256:aa").Revision("3f2a").Obj()
	d := promotion.Decide(given(rollout().Pin("1.0.0").Releases(known, release("1.1.0").Obj()).History(entry("1.1.0").Succeeded())).in())
	diff(t, known, d.Release)
}

func TestInvalidPinIsAProblem(t *testing.T) {
	long := "v" + string(make([]byte, 500))
	for pin, want := range map[string]*verdict.Problem{
		"1.0.0": nil,
		"":      nil,
		"no tag": {
			Reason:  v1alpha1.InvalidWantedVersionReason,
			Message: `spec.wantedVersion "no tag" cannot be a tag in an OCI registry: correct or remove it`,
		},
	} {
		diff(t, want, promotion.Decide(given(upgrade().Pin(pin)).in()).Problem)
	}
	if said := promotion.Decide(given(upgrade().Pin(long)).in()).Problem.Message; len(said) > 500 {
		t.Errorf("a long pin makes a message of %d bytes", len(said))
	}
}

func TestEntriesAreAddedOnlyByPromotions(t *testing.T) {
	for action, want := range map[promotion.Action]bool{
		promotion.Promote: true, promotion.Supersede: true, promotion.Adopt: true, promotion.Retry: false,
		promotion.Nothing: false, promotion.Wait: false,
		promotion.StartBake: false, promotion.FinishBake: false, promotion.FailBake: false,
	} {
		diff(t, want, action.Promotes())
	}
}

// Holds that apply to all candidates are found once. A tenant may have thousands of
// candidates and of HealthChecks: it took seconds to look at every check for every
// candidate.
func TestWorkDoesNotMultiply(t *testing.T) {
	const candidates, unhealthy = 1000, 500
	all := versions(candidates, "")
	work := func(checks ...*fixture.HealthCheckBuilder) float64 {
		in := behind(rollout(), all).checks(checks...).in()
		if held := promotion.Decide(in).Candidates; len(held) != candidates-1 || held[0].HeldBy(v1alpha1.UnhealthyHealthChecksReason) != (len(checks) > 0) {
			t.Fatalf("%d candidates are held by %v", len(held), held[0].Holds)
		}
		return testing.AllocsPerRun(1, func() { promotion.Decide(in) })
	}
	var checks []*fixture.HealthCheckBuilder
	for i := range unhealthy {
		checks = append(checks, check(fmt.Sprint("check-", i)).State(v1alpha1.HealthStatusUnhealthy))
	}
	alone, together := work(), work(checks...)
	if most := 2*alone + 10*unhealthy; together > most {
		t.Errorf("%d candidates take %.0f allocations, and next to %d checks %.0f, want at most %.0f", candidates, alone, unhealthy, together, most)
	}
}
