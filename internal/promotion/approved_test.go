// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// approvals sets what people have said of the releases.
func (s *situation) approvals(all ...*fixture.ApprovalBuilder) *situation {
	for _, given := range all {
		s.input.Approvals.Given = append(s.input.Approvals.Given, *given.Obj())
	}
	return s
}

// clusterGates sets gates of the cluster that select the Rollout.
func (s *situation) clusterGates(all ...*fixture.ClusterGateBuilder) *situation {
	for _, gate := range all {
		s.input.Gates.Cluster = append(s.input.Gates.Cluster, *gate.Obj())
	}
	return s
}

// askedBy sets who has asked for 1.1.0, as the API server knows them.
func (s *situation) askedBy(user string) *situation {
	s.input.Approvals.Requesters = map[string]string{"1.1.0": user}
	return s
}

// decision is a decision on 1.1.0 with digestB, made some time ago.
func decision(user string, ago time.Duration) *fixture.ApprovalBuilder {
	return fixture.MakeApproval(user, "shop", "1.1.0").Digest(digestB).At(noon.Add(-ago))
}

// askingTwo is an upgrade from 1.0.0 to 1.1.0 that a gate asks two people about.
func askingTwo(change ...func(*fixture.RolloutBuilder)) *situation {
	r := rollout().Releases(version("1.0.0", digestA), version("1.1.0", digestB)).History(ran("1.0.0", digestA).Succeeded())
	for _, change := range change {
		change(r)
	}
	return given(r).gates(gate("qa").Asking(fixture.AskFor(2)))
}

func annotated(key, value string) func(*fixture.RolloutBuilder) {
	return func(r *fixture.RolloutBuilder) { r.Annotate(key, value) }
}

func TestReleaseWaitsUntilItIsApproved(t *testing.T) {
	const none, half = "RolloutGate qa: 0 of 2 approvals", "RolloutGate qa: 1 of 2 approvals (bob)"
	wanted := func(r *fixture.RolloutBuilder) { r.Pin("1.1.0") }
	both := []*fixture.ApprovalBuilder{decision("bob", time.Minute), decision("carol", time.Minute)}
	for name, test := range map[string]struct {
		given *situation
		want  string // what holds it; empty if it goes
	}{
		"nobody has approved it":          {askingTwo(), none},
		"one has":                         {askingTwo().approvals(decision("bob", time.Minute)), half},
		"both have":                       {askingTwo().approvals(both...), ""},
		"a bypass lifts no approval":      {askingTwo(annotated(v1alpha1.BypassGatesAnnotation, "1.1.0")), "RolloutGate qa: 0 of 3 approvals"},
		"nor does unblock-failed":         {askingTwo(annotated(v1alpha1.UnblockFailedAnnotation, "true")), none},
		"nor a force":                     {askingTwo(annotated(v1alpha1.ForceDeployAnnotation, "1.1.0")), "RolloutGate qa: 0 of 3 approvals"},
		"nor a pin":                       {askingTwo(wanted), "RolloutGate qa: 0 of 3 approvals"},
		"a pin whose author is not known": {askingTwo(wanted).approvals(both...), "RolloutGate qa: 2 of 3 approvals (bob, carol)"},
		"whoever pins it does not count":  {askingTwo(wanted).approvals(both...).askedBy("bob"), "RolloutGate qa: 1 of 2 approvals (carol); bob's does not count: bob asked for this release"},
		"but two others do":               {askingTwo(wanted).approvals(both...).askedBy("ann"), ""},
		"nor whoever forces it": {
			askingTwo(annotated(v1alpha1.ForceDeployAnnotation, "1.1.0")).approvals(both...).askedBy("bob"), "RolloutGate qa: 1 of 2 approvals (carol); bob's does not count: bob asked for this release",
		},
		"nor whoever bypasses gates for it": {
			askingTwo(annotated(v1alpha1.BypassGatesAnnotation, "1.1.0")).approvals(both...).askedBy("bob"), "RolloutGate qa: 1 of 2 approvals (carol); bob's does not count: bob asked for this release",
		},
		"a gate of the cluster asks as well": {askingTwo().clusterGates(fixture.MakeClusterGate("prod").Asking(fixture.AskFor(3))).approvals(both...), "ClusterRolloutGate prod: 2 of 3 approvals (bob, carol)"},
		"an override":                        {askingTwo().approvals(decision("oncall", time.Minute).Override(time.Hour, "payments down")), ""},
		"an override lifts no schedule": {
			askingTwo().schedules(closedUntil(one, "nights")).approvals(decision("oncall", time.Minute).Override(time.Hour, "payments down")), "RolloutSchedule nights is closed for now",
		},
		"but one that it names": {
			askingTwo().schedules(closedUntil(one, "nights")).approvals(decision("oncall", time.Minute).Override(time.Hour, "payments down", v1alpha1.OverrideSchedules)), "",
		},
		"nor a closed gate": {
			askingTwo().clusterGates(fixture.MakeClusterGate("freeze").Closed()).approvals(decision("oncall", time.Minute).Override(time.Hour, "payments down", v1alpha1.OverrideSchedules)),
			"not passing: ClusterRolloutGate freeze",
		},
		"nor any schedule where no gate asks": {
			askingTwo().gates().schedules(closedUntil(one, "nights")).approvals(oncall(v1alpha1.OverrideSchedules)), "RolloutSchedule nights is closed for now",
		},
		"but a gate that it names": {
			askingTwo().clusterGates(fixture.MakeClusterGate("freeze").Closed()).approvals(decision("oncall", time.Minute).Override(time.Hour, "payments down", v1alpha1.OverrideGates)), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			var holds []string
			for _, hold := range d.Candidates[0].Holds {
				if hold.Reason != v1alpha1.PinnedReason && hold.Reason != v1alpha1.ForcedReason {
					holds = append(holds, hold.Message)
				}
			}
			diff(t, test.want == "", d.Action == promotion.Promote)
			if test.want != "" {
				diff(t, test.want, strings.Join(holds, " | "))
			}
		})
	}
}

func TestEveryPromotionIsApprovedByItself(t *testing.T) {
	used := decision("bob", 30*time.Minute)
	for name, test := range map[string]struct {
		given *situation
		want  string // the tag that is promoted
	}{
		"the first release needs approvals": {
			given(rollout().Releases(version("1.1.0", digestB))).gates(gate("qa").Asking(fixture.AskFor(1))), "",
		},
		"no other one is the first while a pin waits": {
			given(rollout().Pin("1.0.0").Releases(version("1.0.0", digestA), version("1.1.0", digestB))).gates(gate("qa").Asking(fixture.AskFor(1))).approvals(decision("bob", time.Minute)), "",
		},
		"what was used is not known after the history was lost": {
			given(rollout().Releases(version("1.0.0", digestA), version("1.1.0", digestB)).History(ran("1.0.0", digestA).Grounds(v1alpha1.GroundsAdopted).Succeeded())).
				gates(gate("qa").Asking(fixture.AskFor(1))).approvals(decision("bob", 2*time.Hour)), "",
		},
		"nor if it begins with a choice of a user": {
			given(rollout().Releases(version("1.0.0", digestA), version("1.1.0", digestB)).History(ran("1.0.0", digestA).Grounds(v1alpha1.GroundsPinned).Succeeded())).
				gates(gate("qa").Asking(fixture.AskFor(1))).approvals(decision("bob", 2*time.Hour)), "",
		},
		"after the history was lost, what runs is adopted before a choice": {
			given(rollout().Pin("1.1.0").Releases(version("1.0.0", digestA), version("1.1.0", digestB))).owned("1.0.0").
				gates(gate("qa").Asking(fixture.AskFor(1))).approvals(decision("bob", time.Minute)).askedBy("ann"), "1.0.0",
		},
		"nor does a choice go if the targets disagree": {
			given(rollout().Pin("1.1.0").Releases(version("1.0.0", digestA), version("1.1.0", digestB))).owned("1.0.0", "1.1.0").
				gates(gate("qa").Asking(fixture.AskFor(1))).approvals(decision("bob", time.Minute)).askedBy("ann"), "",
		},
		"nor does an override of one": {
			given(rollout().Pin("1.1.0").Releases(version("1.0.0", digestA), version("1.1.0", digestB))).owned("1.0.0", "1.1.0").
				gates(gate("qa").Asking(fixture.AskFor(1))).approvals(oncall()), "",
		},
		"nor does one go while an old history was restored": {
			given(rollout().Pin("1.1.0").Releases(version("1.0.0", digestA), version("1.1.0", digestB)).History(ran("1.0.0", digestA).ID(1).Succeeded())).
				targets(writtenBy(2, pending("apps"))).carried("1.0.0").gates(gate("qa").Asking(fixture.AskFor(1))).approvals(decision("bob", time.Minute)).askedBy("ann"), "",
		},
		"what was used is not known of an older release whose entry is gone": {
			given(rollout().Pin("1.1.0").Releases(version("1.1.0", digestB), version("1.2.0", digestC)).History(ran("1.2.0", digestC).Succeeded())).
				gates(gate("qa").Asking(fixture.AskFor(1))).approvals(decision("bob", 2*time.Hour)).askedBy("ann"), "",
		},
		"but what was approved since then counts": {
			given(rollout().Pin("1.1.0").Releases(version("1.1.0", digestB), version("1.2.0", digestC)).History(ran("1.2.0", digestC).Succeeded())).
				gates(gate("qa").Asking(fixture.AskFor(1))).approvals(decision("bob", time.Minute)).askedBy("ann"), "1.1.0",
		},
		"an approved one goes below one that is not": {
			given(rollout().Releases(version("1.0.0", digestA), version("1.1.0", digestB), version("1.2.0", digestC)).History(ran("1.0.0", digestA).Succeeded())).
				gates(gate("qa").Asking(fixture.AskFor(1))).approvals(decision("bob", time.Minute)), "1.1.0",
		},
		"but not with the strategy Next, if another one is the next": {
			given(rollout().Strategy(v1alpha1.ReleaseNext).Releases(version("1.0.0", digestA), version("1.0.1", digestC), version("1.1.0", digestB)).History(ran("1.0.0", digestA).Succeeded())).
				gates(gate("qa").Asking(fixture.AskFor(1))).approvals(decision("bob", time.Minute)), "",
		},
		"to go back to what succeeded here is free": {
			given(rollout().Pin("1.0.0").Releases(version("1.0.0", digestA), version("1.1.0", digestB)).History(ran("1.1.0", digestB).Failed(), ran("1.0.0", digestA).Succeeded())).
				gates(gate("qa").Asking(fixture.AskFor(1))), "1.0.0",
		},
		"to go back to what failed here is not": {
			given(rollout().Pin("1.0.0").Releases(version("1.0.0", digestA), version("1.1.0", digestB)).History(ran("1.1.0", digestB).Failed(), ran("1.0.0", digestA).Failed())).
				gates(gate("qa").Asking(fixture.AskFor(1))), "",
		},
		"a release that failed needs others": {
			given(rollout().Pin("1.1.0").Releases(version("1.0.0", digestA), version("1.1.0", digestB)).History(ran("1.0.0", digestA).Succeeded(), ran("1.1.0", digestB).Failed())).
				gates(gate("qa").Asking(fixture.AskFor(1))).approvals(used.At(eleven), decision("carol", 2*time.Hour)), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := promotion.Decide(test.given.in())
			got := ""
			if d.Action.Promotes() {
				got = d.Release.Tag
			}
			diff(t, test.want, got)
		})
	}
}

func pins(r *fixture.RolloutBuilder) { r.Pin("1.1.0") }

// oncall overrides what is missing, and more.
func oncall(alsoLifts ...v1alpha1.OverriddenHold) *fixture.ApprovalBuilder {
	return decision("oncall", time.Minute).Override(time.Hour, "payments down", alsoLifts...)
}

// afterMany is a decision after the approvals of more people than an entry names.
func afterMany(last *fixture.ApprovalBuilder) []*fixture.ApprovalBuilder {
	all := []*fixture.ApprovalBuilder{}
	for _, user := range strings.Split("a b c d e f g h i j k l", " ") {
		all = append(all, decision(user, time.Minute))
	}
	return append(all, last)
}

func TestHistorySaysWhoApproved(t *testing.T) {
	for name, test := range map[string]struct {
		given *situation
		want  string
	}{
		"no gate asks": {given(upgrade()), "none"},
		"approved":     {askingTwo().approvals(decision("bob", time.Minute).As("qa").Because("CHG-1"), decision("carol", time.Minute)), "Approved by bob carol for qa"},
		"overridden":   {askingTwo().approvals(decision("oncall", time.Minute).Override(time.Hour, "payments down")), "Overridden by oncall for qa"},
		"past a schedule": {
			askingTwo().schedules(closedUntil(one, "nights")).approvals(afterMany(oncall(v1alpha1.OverrideSchedules))...), "Overridden by oncall a b c d e f g h i for qa",
		},
		"past a gate":                     {askingTwo().clusterGates(fixture.MakeClusterGate("freeze").Closed()).approvals(afterMany(oncall(v1alpha1.OverrideGates))...), "Overridden by oncall a b c d e f g h i for qa"},
		"past a schedule that is open":    {askingTwo().approvals(afterMany(oncall(v1alpha1.OverrideSchedules))...), "Approved by a b c d e f g h i j for qa"},
		"past a schedule that a pin does": {askingTwo(pins).schedules(closedUntil(one, "nights")).approvals(afterMany(oncall(v1alpha1.OverrideSchedules))...), "Approved by a b c d e f g h i j for qa"},
		"a way back":                      {given(rollout().Pin("1.0.0").Releases(version("1.0.0", digestA), version("1.1.0", digestB)).History(ran("1.1.0", digestB).Failed(), ran("1.0.0", digestA).Succeeded())).gates(gate("qa").Asking(fixture.AskFor(1))), "NotNeeded by  for "},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.given.in()
			history, err := promotion.Record(in, promotion.Decide(in))
			if err != nil {
				t.Fatal(err)
			}
			got, record := "none", history[0].Approval
			if record != nil {
				var people []string
				for _, by := range record.By {
					people = append(people, by.Username)
				}
				got = string(record.Outcome) + " by " + strings.Join(people, " ") + " for " + strings.Join(record.Gates, " ")
			}
			diff(t, test.want, got)
		})
	}
}

// A pin that nobody has approved is not a state yet. What was said next to it waits with it.
func TestUnapprovedChoiceHoldsNoRollback(t *testing.T) {
	chosen := func() *fixture.RolloutBuilder {
		return afterProven().Ledger("1.1.0", "1.2.0", "1.3.0").Annotate(v1alpha1.DeployUserAnnotation, "ann")
	}
	asking := func(r *fixture.RolloutBuilder) *situation {
		return given(r).gates(gate("qa").Asking(fixture.AskFor(2)))
	}
	for name, test := range map[string]struct {
		given   *situation
		back    bool
		awaited string
	}{
		"a pin":                  {asking(chosen().Pin("1.3.0")), true, "1.3.0"},
		"a force":                {asking(chosen().Annotate(v1alpha1.ForceDeployAnnotation, "1.3.0")), true, "1.3.0"},
		"a pin of what runs":     {asking(chosen().Pin("1.2.0")), false, ""},
		"a pin that no gate has": {asking(chosen().Pin("1.3.0")).gates(gate("qa").Asking(automaticOnly())), false, ""},
		"a name that is no tag":  {asking(chosen().Pin("1.3.0!")), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.given.in()
			d := promotion.Decide(in)
			diff(t, test.back, d.Back != nil)
			awaited := ""
			if d.Awaited != nil {
				awaited = d.Awaited.Release.Tag
			}
			diff(t, test.awaited, awaited)
			if !test.back {
				return
			}
			history, err := promotion.Record(in, d)
			if err != nil {
				t.Fatal(err)
			}
			diff(t, "", history[0].RequestDigest)
			diff(t, 0, len(d.Consumed))
		})
	}
}

func automaticOnly() *v1alpha1.Approvals {
	asks := fixture.AskFor(2)
	asks.AppliesTo = []v1alpha1.ApprovedPromotion{v1alpha1.ApproveAutomatic}
	return asks
}

func reasonsOf(v promotion.Verdict) (reasons []string) {
	for _, hold := range v.Holds {
		reasons = append(reasons, hold.Reason)
	}
	return reasons
}

func TestMissingApprovalIsAHoldOfAGate(t *testing.T) {
	noDigest := func(r *fixture.RolloutBuilder) { r.Releases(version("1.0.0", digestA), release("1.1.0").Obj()) }
	for reason, given := range map[string]*situation{
		v1alpha1.ApprovalRequiredReason: askingTwo(),
		v1alpha1.ApprovalRejectedReason: askingTwo().approvals(decision("eve", time.Minute).Reject()),
		v1alpha1.DigestUnknownReason:    askingTwo(noDigest),
	} {
		in := given.clusterGates(fixture.MakeClusterGate("prod").Asking(fixture.AskFor(1)), fixture.MakeClusterGate("dev")).in()
		candidate := promotion.Decide(in).Candidates[0]
		diff(t, []string{reason}, reasonsOf(candidate))
		diff(t, true, candidate.HeldByGates())
		diff(t, []string{"qa", "cluster/prod"}, promotion.Blocking(in, reason, candidate.Release))
	}
	in := askingTwo(noDigest).gates().in()
	in.Targets.Pinned = content.AllPinned
	diff(t, false, promotion.Decide(in).Candidates[0].HeldByGates())
}

func TestHistorySaysWhetherAUserIsVerified(t *testing.T) {
	signed := func(r *fixture.RolloutBuilder) { r.Pin("1.1.0").Annotate(v1alpha1.DeployUserAnnotation, "ann") }
	for user, verified := range map[string]bool{"ann": true, "bob": false, "": false} {
		in := askingTwo(signed).gates().askedBy(user).in()
		history, err := promotion.Record(in, promotion.Decide(in))
		if err != nil {
			t.Fatal(err)
		}
		diff(t, v1alpha1.TriggeredBy{Kind: v1alpha1.TriggeredByUser, Name: "ann", Verified: verified}, *history[0].TriggeredBy)
	}
}

func TestExpiryIsLookedAtWhileSomethingElseHolds(t *testing.T) {
	s := askingTwo().schedules(closedUntil(never, "nights")).approvals(decision("bob", 167*time.Hour), decision("carol", time.Minute))
	diff(t, noon.Add(time.Hour), promotion.Decide(s.in()).RecheckAt)
}

func TestExpiryIsLookedAtWhileAPinWaits(t *testing.T) {
	older := func(r *fixture.RolloutBuilder) {
		r.Pin("0.9.0").Releases(version("0.9.0", digestC), version("1.0.0", digestA)).History(ran("1.0.0", digestA).At(noon.Add(-200 * time.Hour)).Succeeded())
	}
	approved := fixture.MakeApproval("bob", "shop", "0.9.0").Digest(digestC).At(noon.Add(-167 * time.Hour))
	d := promotion.Decide(askingTwo(older).approvals(approved).in())
	diff(t, "0.9.0", d.Awaited.Release.Tag)
	diff(t, noon.Add(time.Hour), d.RecheckAt)
}

// approvedBefore is the entry of 1.1.0 with digestB, which people approved at eleven.
func approvedBefore() *fixture.EntryBuilder {
	return ran("1.1.0", digestB).Approval(&v1alpha1.ApprovalRecord{Outcome: v1alpha1.OutcomeApproved})
}

// otherContent is a Rollout whose target has pulled digestC under the tag of the newest entry.
func otherContent(newest *fixture.EntryBuilder) *situation {
	s := given(rollout().Releases(version("1.1.0", digestC)).History(newest)).gates(gate("qa").Asking(fixture.AskFor(1))).targets(pulls(image, digestC))
	s.input.Policy.Image = image
	s.input.Targets.All = s.input.Compared()
	return s
}

func ofContent(user, digest string) *fixture.ApprovalBuilder {
	return fixture.MakeApproval(user, "shop", "1.1.0").Digest(digest).At(noon)
}

func TestOtherContentThanApprovedIsNoProof(t *testing.T) {
	for name, test := range map[string]struct {
		given    *situation
		mismatch bool
	}{
		"at the pull":                   {otherContent(approvedBefore().Deploying()), true},
		"which others have approved":    {otherContent(approvedBefore().Deploying()).approvals(ofContent("bob", digestC)), false},
		"while no gate asks":            {otherContent(approvedBefore().Deploying()).gates(), false},
		"after it has succeeded":        {otherContent(approvedBefore().Succeeded()), false},
		"that nobody needed to approve": {otherContent(ran("1.1.0", digestB).Deploying()), false},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.given.in()
			in.Targets.All = in.Compared()
			diff(t, test.mismatch, in.Targets.All[0].Mismatch)
			diff(t, !test.mismatch, promotion.Decide(in).Reason == v1alpha1.TagMovedReason)
		})
	}
}

func TestContentThatNobodyApprovedIsRecorded(t *testing.T) {
	missing := func() *fixture.EntryBuilder {
		return ran("1.1.0", digestC).Approval(&v1alpha1.ApprovalRecord{Outcome: v1alpha1.OutcomeMissing}).Succeeded()
	}
	for name, test := range map[string]struct {
		given *situation
		want  string
	}{
		"when it moves":                       {otherContent(approvedBefore().Succeeded()), "Missing by "},
		"if it was approved before":           {otherContent(approvedBefore().Succeeded()).approvals(ofContent("bob", digestC)), "Approved by bob"},
		"but not if other content was":        {otherContent(approvedBefore().Succeeded()).approvals(ofContent("bob", digestB)), "Missing by "},
		"nor if no gate asks about it":        {otherContent(approvedBefore().Succeeded()).gates(gate("qa").Asking(manualOnly())), "NotNeeded by "},
		"until somebody approves it":          {otherContent(missing()).approvals(ofContent("bob", digestC)), "Approved by bob"},
		"or overrides that":                   {otherContent(missing()).approvals(ofContent("eve", digestC).Override(time.Hour, "payments down")), "Overridden by eve"},
		"and still":                           {otherContent(missing()), "Missing by "},
		"and still, if gates ask no more":     {otherContent(missing()).gates(), "Missing by "},
		"and not by who approved it too soon": {otherContent(missing()).approvals(ofContent("bob", digestC).At(eleven)), "Missing by "},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.given.in()
			in.Targets.All = in.Compared()
			history, err := promotion.Record(in, promotion.Decide(in))
			if err != nil {
				t.Fatal(err)
			}
			got := string(history[0].Approval.Outcome) + " by "
			for _, by := range history[0].Approval.By {
				got += by.Username
			}
			diff(t, test.want, got)
		})
	}
}

func manualOnly() *v1alpha1.Approvals {
	asks := fixture.AskFor(1)
	asks.AppliesTo = []v1alpha1.ApprovedPromotion{v1alpha1.ApproveManual}
	return asks
}

// A pinned tag that Flux does not report has a digest, too.
func TestRegistryIsAskedWhatIsApproved(t *testing.T) {
	pins := func(r *fixture.RolloutBuilder) { r.Pin("2.0.0") }
	diff(t, "2.0.0", promotion.MissingMetadata(askingTwo(pins).in())[0].Tag)
	diff(t, false, promotion.MissingMetadata(askingTwo(pins).gates().in())[0].Tag == "2.0.0")
	described := askingTwo(func(r *fixture.RolloutBuilder) {
		r.Releases(release("1.0.0").Created(eleven).Obj(), release("1.1.0").Created(eleven).Obj())
	})
	diff(t, "1.1.0", promotion.MissingMetadata(described.in())[0].Tag)

	known := askingTwo(pins).knows(description{releases.Metadata{Tag: "2.0.0", Digest: digestC}})
	diff(t, digestC, *promotion.Decide(known.in()).Awaited.Release.Digest)
	for _, user := range []string{"ann", "bob", "eve"} {
		known.approvals(fixture.MakeApproval(user, "shop", "2.0.0").Digest(digestC).At(noon))
	}
	d := promotion.Decide(known.in())
	diff(t, promotion.Promote, d.Action)
	diff(t, digestC, *d.Release.Digest)
}

// ran is an entry of content.
func ran(tag, digest string) *fixture.EntryBuilder { return entry(tag).Version(version(tag, digest)) }
