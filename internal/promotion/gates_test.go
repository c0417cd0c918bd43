// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestGatesHoldReleasesBack(t *testing.T) {
	notAllowed := func(gate string) []verdict.Hold {
		return []verdict.Hold{{Reason: v1alpha1.NoAllowedVersionsReason, Message: "RolloutGate " + gate + " does not allow 1.1.0"}}
	}
	closed := func(names string) []verdict.Hold {
		return []verdict.Hold{{Reason: v1alpha1.SomeGatesBlockingReason, Message: "not passing: " + names}}
	}
	for name, test := range map[string]struct {
		given *situation
		want  []verdict.Hold
	}{
		"without gates nothing holds":                       {given(upgrade()), nil},
		"a passing gate without allowedVersions holds none": {given(upgrade()).gates(gate("qa")), nil},
		"a gate that lists the release lets it through":     {given(upgrade()).gates(gate("qa").Allow("1.0.0", "1.1.0")), nil},
		"a gate that does not list it holds it":             {given(upgrade()).gates(gate("qa").Allow("1.0.0")), notAllowed("qa")},
		"an empty list lets nothing through":                {given(upgrade()).gates(gate("qa").Allow()), notAllowed("qa")},
		"a gate that is not passing holds everything":       {given(upgrade()).gates(gate("manual").Closed()), closed("RolloutGate manual")},
		"one of several is enough": {
			given(upgrade()).gates(gate("a"), gate("b").Closed(), gate("c").Allow("1.1.0")), closed("RolloutGate b"),
		},
		"all that are closed are named": {
			given(upgrade()).gates(gate("a").Closed(), gate("b"), gate("c").Closed()), closed("RolloutGate a, RolloutGate c"),
		},
		"what a closed gate allows does not matter": {
			given(upgrade()).gates(gate("a").Closed().Allow("1.1.0")), closed("RolloutGate a"),
		},
		"several lists intersect": {
			given(upgrade()).gates(gate("a").Allow("1.1.0"), gate("b").Allow("1.0.0")), notAllowed("b"),
		},
		"all that do not allow it are named": {
			given(upgrade()).gates(gate("a").Allow("1.0.0"), gate("b"), gate("c").Allow()),
			[]verdict.Hold{{
				Reason:  v1alpha1.NoAllowedVersionsReason,
				Message: "RolloutGate a does not allow 1.1.0; RolloutGate c does not allow 1.1.0",
			}},
		},
		"those that are closed, and those that do not allow it": {
			given(upgrade()).gates(gate("a").Allow("1.0.0"), gate("b").Closed()), append(closed("RolloutGate b"), notAllowed("a")...),
		},
		"gates that cannot be read hold everything": {
			given(upgrade()).gatesUnreadable(), []verdict.Hold{{Reason: "Broken", Message: "it is broken"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			diff(t, test.want, d.Candidates[0].Holds)
			diff(t, test.want == nil, d.Action == promotion.Promote)
		})
	}
}

func TestSchedulesHoldReleasesBack(t *testing.T) {
	invalid := promotion.Window{
		Schedule: "RolloutSchedule bad", Problem: &verdict.Problem{Reason: v1alpha1.InvalidScheduleReason, Message: "it is invalid"},
	}
	closed := func(until time.Time, message string) []verdict.Hold {
		return []verdict.Hold{{Reason: v1alpha1.ScheduleClosedReason, Message: message, Until: until}}
	}
	two := one.Add(time.Hour)
	for name, test := range map[string]struct {
		schedules []promotion.Window
		want      []verdict.Hold
	}{
		"an open one lets everything through":         {[]promotion.Window{openUntil(one, "days")}, nil},
		"a closed one holds everything till it opens": {[]promotion.Window{closedUntil(one, "nights")}, closed(one, "RolloutSchedule nights is closed for now")},
		"or forever": {[]promotion.Window{closedUntil(never, "nights")}, closed(never, "RolloutSchedule nights is closed for now")},
		"one of several is enough": {
			[]promotion.Window{openUntil(one, "days"), closedUntil(two, "nights")}, closed(two, "RolloutSchedule nights is closed for now"),
		},
		"all that are closed are named, and the last to open counts": {
			[]promotion.Window{closedUntil(two, "a"), closedUntil(one, "b")},
			closed(two, "RolloutSchedule a is closed for now, RolloutSchedule b is closed for now"),
		},
		"one that never opens holds forever": {
			[]promotion.Window{closedUntil(never, "a"), closedUntil(one, "b")},
			closed(never, "RolloutSchedule a is closed for now, RolloutSchedule b is closed for now"),
		},
		"what cannot be evaluated holds, and is reported before what is closed": {
			[]promotion.Window{closedUntil(one, "a"), invalid},
			append([]verdict.Hold{{Reason: v1alpha1.InvalidScheduleReason, Message: "it is invalid"}},
				closed(one, "RolloutSchedule a is closed for now")...),
		},
		"all that cannot be evaluated are named": {
			[]promotion.Window{invalid, openUntil(never, "days"), invalid},
			[]verdict.Hold{{Reason: v1alpha1.InvalidScheduleReason, Message: "it is invalid; it is invalid"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(given(upgrade()).schedules(test.schedules...).in())
			diff(t, test.want, d.Candidates[0].Holds)
			diff(t, test.want == nil, d.Action == promotion.Promote)
			var until time.Time
			if test.want != nil {
				until = test.want[len(test.want)-1].Until
			}
			diff(t, until, d.RecheckAt)
		})
	}
}

func TestScheduleIsJudgedWhenSomethingElseLetsGo(t *testing.T) {
	shop := func() *situation { return given(upgrade().ReleaseUpdateInterval(2 * time.Hour)) }
	diff(t, one, promotion.Decide(shop().schedules(openUntil(noon.Add(instant), "days")).in()).RecheckAt)
	d := promotion.Decide(shop().at(one).schedules(closedUntil(never, "days")).in())
	diff(t, promotion.Nothing, d.Action)
}

func TestCopyOfAScheduleIsShownAndNotJudged(t *testing.T) {
	in := given(upgrade()).gates(gate("a"), gate("z")).in()
	in.Gates.Copies = []v1alpha1.RolloutGate{*gate("schedule-gate-1").Closed().Obj()}
	diff(t, promotion.Promote, promotion.Decide(in).Action)
	var shown []string
	for _, g := range promotion.Summaries(in, nil) {
		shown = append(shown, g.Name+": "+g.Message)
	}
	diff(t, []string{"a: lets every release through", "schedule-gate-1: holds back every release", "z: lets every release through"}, shown)
}

func TestGateWithoutPassingPasses(t *testing.T) {
	in := given(upgrade()).gates(gate("old")).in()
	in.Gates.Gates[0].Spec.Passing = nil
	diff(t, promotion.Promote, promotion.Decide(in).Action)
}

func TestHeldByGates(t *testing.T) {
	for reason, want := range map[string]bool{
		v1alpha1.SomeGatesBlockingReason:     true,
		v1alpha1.NoAllowedVersionsReason:     true,
		v1alpha1.ScheduleClosedReason:        true,
		v1alpha1.InvalidScheduleReason:       true,
		v1alpha1.GateListFailedReason:        true,
		v1alpha1.UnhealthyHealthChecksReason: false,
		v1alpha1.FailedBeforeReason:          false,
	} {
		verdict := promotion.Verdict{Holds: []verdict.Hold{{Reason: reason}}}
		diff(t, want, verdict.HeldByGates())
	}
}

func TestGateSummaries(t *testing.T) {
	for name, test := range map[string]struct {
		gates []*fixture.GateBuilder
		want  string
	}{
		"no gates, no summary": {nil, `null`},
		"absent allowedVersions stay absent": {
			[]*fixture.GateBuilder{gate("qa")},
			`[{"name":"qa","passing":true,"message":"lets every release through"}]`,
		},
		"empty allowedVersions stay an empty list": {
			[]*fixture.GateBuilder{gate("qa").Allow()},
			`[{"name":"qa","passing":true,"allowedVersions":[],"message":"lets 0 versions through"}]`,
		},
		"allowedVersions are shown as given": {
			[]*fixture.GateBuilder{gate("qa").Allow("1.1.0", "1.0.0")},
			`[{"name":"qa","passing":true,"allowedVersions":["1.1.0","1.0.0"],"message":"lets 2 versions through"}]`,
		},
		"a closed gate shows no versions": {
			[]*fixture.GateBuilder{gate("qa").Closed().Allow("1.1.0")},
			`[{"name":"qa","passing":false,"message":"holds back every release"}]`,
		},
		"every gate, in the order given": {
			[]*fixture.GateBuilder{gate("a").Closed(), gate("b")},
			`[{"name":"a","passing":false,"message":"holds back every release"},` +
				`{"name":"b","passing":true,"message":"lets every release through"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			wire, err := json.Marshal(promotion.Summaries(given(rollout()).gates(test.gates...).in(), nil))
			if err != nil {
				t.Fatal(err)
			}
			diff(t, test.want, string(wire))
		})
	}
}

func TestAllowedVersionsListOfNullStaysAnEmptyList(t *testing.T) {
	g := gate("qa").Obj()
	g.Spec.AllowedVersions = to([]string(nil))
	in := given(rollout()).in()
	in.Gates.Gates = []v1alpha1.RolloutGate{*g}
	diff(t, []string{}, promotion.Summaries(in, nil)[0].AllowedVersions)
}
