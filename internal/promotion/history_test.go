// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"math"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// decideAndRecord does what the controller does in one pass.
func decideAndRecord(t *testing.T, s *situation) []v1alpha1.DeploymentHistoryEntry {
	t.Helper()
	history, err := promotion.Record(s.in(), promotion.Decide(s.in()))
	if err != nil {
		t.Fatal(err)
	}
	return history
}

func TestPromotionIsRecorded(t *testing.T) {
	const bySystem, byPerson = "the newest eligible release of ImagePolicy shop", "pinned manually in spec.wantedVersion"
	recorded := func(tag, message string) *fixture.EntryBuilder {
		grounds := map[string]v1alpha1.Grounds{bySystem: v1alpha1.GroundsNewest, byPerson: v1alpha1.GroundsPinned}[message]
		recorded := entry(tag).At(noon).Grounds(grounds).Message(message).By(v1alpha1.TriggeredBySystem, promotion.SystemName)
		if message == byPerson {
			recorded.By(v1alpha1.TriggeredByUser, v1alpha1.UnknownUser)
		}
		return recorded
	}
	before := entry("1.0.0").Succeeded()
	for name, test := range map[string]struct {
		given *situation
		want  []*fixture.EntryBuilder
	}{
		"as Deploying, on top of the history": {
			given(rollout().BakeTime(time.Hour).Ledger("1.0.0", "1.1.0").History(before)).targets(pending("apps")),
			[]*fixture.EntryBuilder{
				recorded("1.1.0", bySystem).Deploying().Because("waiting for Flux to apply 1.1.0 to 1 target"), before,
			},
		},
		"saying which health is awaited": {
			given(rollout().SelectAllChecks().Ledger("1.0.0", "1.1.0").History(before)).
				targets(pending("apps"), pending("infra")).checks(check("db"), check("smoke")),
			[]*fixture.EntryBuilder{
				recorded("1.1.0", bySystem).Deploying().Because("waiting for Flux to apply 1.1.0 to 2 targets, then for 2 HealthChecks"), before,
			},
		},
		"as a user's choice": {
			given(rollout().Pin("1.1.0").Ledger("1.0.0", "1.1.0").History(before)).targets(pending("apps")),
			[]*fixture.EntryBuilder{
				recorded("1.1.0", byPerson).Deploying().Because("waiting for Flux to apply 1.1.0 to 1 target"), before,
			},
		},
		"with all that is known of the release": {
			given(rollout().Releases(release("1.0.0").Obj(), release("1.1.0").Digest("sha256:aa").Revision("3f2a").Created(eleven).Obj()).
				History(before)).targets(pending("apps")),
			[]*fixture.EntryBuilder{
				recorded("1.1.0", bySystem).Deploying().Because("waiting for Flux to apply 1.1.0 to 1 target").
					Version(release("1.1.0").Digest("sha256:aa").Revision("3f2a").Created(eleven).Obj()),
				before,
			},
		},
		"as Succeeded where there is nothing at all to wait for": {
			given(rollout().Ledger("1.0.0", "1.1.0").History(before)),
			[]*fixture.EntryBuilder{
				recorded("1.1.0", bySystem).Succeeded().ProvenBy(0, 0).BakeEnd(noon).
					Because("no Flux object is annotated with this Rollout: nothing to deploy"),
				before,
			},
		},
		"as Deploying without targets, if something protects it": {
			given(rollout().DeployTimeout(time.Hour).Ledger("1.0.0", "1.1.0").History(before)),
			[]*fixture.EntryBuilder{
				recorded("1.1.0", bySystem).Deploying().Because("waiting for Flux to apply 1.1.0 to 0 targets"), before,
			},
		},
		"as Deploying while targets cannot be read": {
			given(rollout().Ledger("1.0.0", "1.1.0").History(before)).targetsUnreadable(),
			[]*fixture.EntryBuilder{
				recorded("1.1.0", bySystem).Deploying().Because("waiting for Flux to apply 1.1.0 to 0 targets"), before,
			},
		},
		"in whole seconds, as the wire has them": {
			given(rollout().BakeTime(time.Hour).Ledger("1.0.0", "1.1.0").History(before)).at(noon.Add(999 * time.Millisecond)),
			[]*fixture.EntryBuilder{
				recorded("1.1.0", bySystem).Deploying().Because("waiting for Flux to apply 1.1.0 to 0 targets"), before,
			},
		},
		"saying that there is no target, if only health is awaited": {
			given(rollout().SelectAllChecks().Ledger("1.0.0", "1.1.0").History(before)).checks(check("db")),
			[]*fixture.EntryBuilder{
				recorded("1.1.0", bySystem).Deploying().
					Because("no Flux object is annotated with this Rollout; waiting for 1 HealthCheck"),
				before,
			},
		},
		"and cancels the deployment that it supersedes, whose message stays": {
			given(rollout().Pin("1.0.0").BakeTime(time.Hour).Ledger("1.0.0", "1.1.0").
				History(entry("1.1.0").Deploying().Message("why it went out").Because("waiting"))).targets(pending("apps")),
			[]*fixture.EntryBuilder{
				recorded("1.0.0", byPerson).Deploying().Because("waiting for Flux to apply 1.0.0 to 1 target"),
				entry("1.1.0").Cancelled().Message("why it went out").Because("superseded by 1.0.0").BakeEnd(noon),
			},
		},
		"and cancels the bake that it supersedes, whose start stays": {
			given(rollout().Pin("1.0.0").BakeTime(2*time.Hour).Ledger("1.0.0", "1.1.0").History(entry("1.1.0").Baking(eleven))).
				targets(pending("apps")),
			[]*fixture.EntryBuilder{
				recorded("1.0.0", byPerson).Deploying().Because("waiting for Flux to apply 1.0.0 to 1 target"),
				entry("1.1.0").Cancelled().BakeStart(eleven).Because("superseded by 1.0.0").BakeEnd(noon),
			},
		},
		"but changes no final state before it": {
			given(rollout().Pin("1.0.0").Ledger("1.0.0", "1.1.0").History(entry("1.1.0").Failed(failedCheck("db", "down")).Because("db is down"))).
				targets(pending("apps")),
			[]*fixture.EntryBuilder{
				recorded("1.0.0", byPerson).Recovering().Deploying().Because("waiting for Flux to apply 1.0.0 to 1 target"),
				entry("1.1.0").Failed(failedCheck("db", "down")).Because("db is down"),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, entries(test.want...), decideAndRecord(t, test.given))
		})
	}
}

func TestOutcomeIsRecorded(t *testing.T) {
	later := noon.Add(time.Second) // half a second past noon, rounded up
	halfPast := noon.Add(500 * time.Millisecond)
	for name, test := range map[string]struct {
		given *situation
		want  *fixture.EntryBuilder
	}{
		"nothing, while it waits": {
			given(deploying()).targets(pending("apps")), entry("1.1.0").Deploying(),
		},
		"the start of the bake": {
			given(deploying().BakeTime(time.Hour)).at(halfPast),
			entry("1.1.0").Baking(later).AppliedSince(noon).Because("nothing to deploy; baking for 1h0m0s, until 2026-03-02T13:00:01Z"),
		},
		"the success of a bake": {
			given(baking().BakeTime(time.Minute)).at(halfPast),
			entry("1.1.0").Succeeded().AppliedSince(noon).ProvenBy(0, 0).BakeStart(eleven).BakeEnd(later).Because("nothing to deploy for the bake time of 1m0s"),
		},
		"a success without a bake time": {
			given(deploying().DeployTimeout(2 * time.Hour)).at(halfPast),
			entry("1.1.0").Succeeded().AppliedSince(noon).ProvenBy(0, 0).BakeStart(later).BakeEnd(later).Because("nothing to deploy"),
		},
		"a success with nothing to protect": {
			given(deploying()).at(halfPast),
			entry("1.1.0").Succeeded().AppliedSince(noon).ProvenBy(0, 0).BakeEnd(later).Because("nothing to deploy"),
		},
		"a failure, with its checks": {
			given(baking().BakeTime(2 * time.Hour)).at(halfPast).resetChecks(check("db").Unhealthy().Message("down")),
			entry("1.1.0").Failed(failedCheck("db", "down")).Cause(v1alpha1.CauseHealthCheckFailed).AppliedSince(noon).BakeStart(eleven).BakeEnd(later).Because("HealthCheck shop-prod/db: down"),
		},
		"a failure by the deadline": {
			given(deploying().DeployTimeout(time.Minute)).targets(pending("apps")),
			entry("1.1.0").Failed().Cause(v1alpha1.CauseDeployTimeout).BakeEnd(noon).
				Because("not applied and healthy within 1m0s: Kustomization shop-prod/apps has not applied it"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, entries(test.want), decideAndRecord(t, test.given))
		})
	}
}

func TestIDs(t *testing.T) {
	for name, test := range map[string]struct {
		given *situation
		want  int64
	}{
		"begin with one":                       {given(rollout().Ledger("1.1.0")), 1},
		"go on after the highest":              {given(rollout().Ledger("1.1.0").History(entry("1.0.0").ID(3), entry("0.9.0").ID(8))), 9},
		"begin after entries without any":      {given(rollout().Ledger("1.1.0").History(entry("1.0.0").WithoutID())), 1},
		"skip entries without one":             {given(rollout().Ledger("1.1.0").History(entry("1.0.0").WithoutID(), entry("0.9.0").ID(4))), 5},
		"go on at the limit":                   {given(rollout().HistoryLimit(1).Ledger("1.1.0").History(entry("1.0.0").ID(41))), 42},
		"do not heed one that none can follow": {given(rollout().Ledger("1.1.0").History(entry("1.0.0").ID(math.MaxInt64), entry("0.9.0").ID(4))), 5},
		"do not repeat what was lost: adopted": {given(rollout().Ledger("1.1.0")).owned("1.0.0"), noon.Unix()},
		"do not repeat what was lost: pinned":  {given(rollout().Pin("1.0.0").Ledger("1.1.0")).owned("1.0.0", "1.1.0"), noon.Unix()},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, &test.want, decideAndRecord(t, test.given)[0].ID)
		})
	}
}

func TestHistoryIsLimited(t *testing.T) {
	for name, test := range map[string]struct {
		rollout *fixture.RolloutBuilder
		want    []string
	}{
		"to ten entries by default": {
			rollout().Ledger("1.10.0").History(successes("1.9.0", "1.8.0", "1.7.0", "1.6.0", "1.5.0", "1.4.0", "1.3.0", "1.2.0", "1.1.0", "1.0.0")...),
			[]string{"1.10.0", "1.9.0", "1.8.0", "1.7.0", "1.6.0", "1.5.0", "1.4.0", "1.3.0", "1.2.0", "1.1.0"},
		},
		"to as many as the spec says": {
			rollout().HistoryLimit(2).Ledger("1.3.0").History(successes("1.2.0", "1.1.0", "1.0.0")...),
			[]string{"1.3.0", "1.2.0"},
		},
		"to one": {rollout().HistoryLimit(1).Ledger("1.1.0").History(successes("1.0.0")...), []string{"1.1.0"}},
		"but a failure that keeps a candidate from going out again stays": {
			rollout().HistoryLimit(1).Pin("1.0.0").Ledger("1.0.0", "1.1.0").History(entry("1.1.0").Failed(), entry("1.0.0").Succeeded()),
			[]string{"1.0.0", "1.1.0"},
		},
		"a failure that is older than what runs does not": {
			rollout().HistoryLimit(1).Pin("1.2.0").Ledger("1.0.0", "1.1.0", "1.2.0").History(entry("1.1.0").Failed(), entry("1.0.0").Succeeded()),
			[]string{"1.2.0"},
		},
		"a failure that the registry no longer lists does not": {
			rollout().HistoryLimit(1).Pin("1.0.0").Ledger("1.0.0", "1.2.0").History(entry("1.1.0").Failed(), entry("1.0.0").Succeeded()),
			[]string{"1.0.0"},
		},
		"of a release that failed twice, the newest failure stays": {
			rollout().HistoryLimit(1).Pin("1.0.0").Ledger("1.0.0", "1.1.0").
				History(entry("1.1.0").Failed(), entry("1.0.0").Succeeded(), entry("1.1.0").Failed()),
			[]string{"1.0.0", "1.1.0"},
		},
		"a failure that a later success has healed does not stay": {
			rollout().HistoryLimit(2).Pin("1.0.0").Ledger("1.0.0", "1.1.0").
				History(entry("1.1.0").Succeeded(), entry("1.1.0").Failed()),
			[]string{"1.0.0", "1.1.0"},
		},
		"behind a custom build, the entry that gives the position stays": {
			rollout().HistoryLimit(1).Pin("hotfix-bob").Ledger("1.0.0", "1.1.0").History(entry("1.1.0").Succeeded(), entry("1.0.0").Succeeded()),
			[]string{"hotfix-bob", "1.1.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, e := range decideAndRecord(t, given(test.rollout).targets(pending("apps"))) {
				got = append(got, e.Version.Tag)
			}
			diff(t, test.want, got)
		})
	}
}

// successes returns succeeded entries of these releases, newest first.
func successes(tags ...string) []*fixture.EntryBuilder {
	var all []*fixture.EntryBuilder
	for _, tag := range tags {
		all = append(all, entry(tag).Succeeded())
	}
	return all
}

func TestCuttingTheHistoryFreesNoFailedRelease(t *testing.T) {
	for name, pin := range map[string]string{"after a rollback": "1.0.0", "after a custom build": "hotfix-bob"} {
		t.Run(name, func(t *testing.T) {
			r := rollout().HistoryLimit(1).Ledger("1.0.0", "1.1.0").History(entry("1.1.0").Failed(), entry("1.0.0").Succeeded())
			s := given(r.Pin(pin))
			s.input.Rollout.Status.History = decideAndRecord(t, s)
			s.input.Rollout.Spec.WantedVersion = nil
			diff(t, outcome{Action: promotion.Nothing}, outcomeOf(promotion.Decide(s.in())))
		})
	}
}

// A pin is deployed while the ImagePolicy cannot be read, and the limit cuts earlier
// entries. Once the policy is back, no older release and no failed release may be
// promoted.
func TestCuttingTheHistoryWithoutThePolicyForgetsNothing(t *testing.T) {
	r := rollout().HistoryLimit(1).Pin("hotfix-bob").Ledger("1.0.0", "1.1.0", "1.2.0").
		History(entry("hotfix-ann").Succeeded(), entry("1.1.0").Succeeded(), entry("1.2.0").Failed(), entry("1.1.0").Succeeded())
	away := given(r).policyUnreadable()
	away.input.Policy.Order = releases.Order{}
	kept := decideAndRecord(t, away)
	var tags []string
	for _, e := range kept {
		tags = append(tags, e.Version.Tag)
	}
	diff(t, []string{"hotfix-bob", "hotfix-ann", "1.1.0", "1.2.0"}, tags)
	back := given(r)
	back.input.Rollout.Status.History, back.input.Rollout.Spec.WantedVersion = kept, nil
	diff(t, outcome{Action: promotion.Nothing}, outcomeOf(promotion.Decide(back.in())))
}

func TestTransitionsThatAreNotAllowedFail(t *testing.T) {
	states := []v1alpha1.BakeStatus{
		"", v1alpha1.BakeDeploying, v1alpha1.BakeInProgress, v1alpha1.BakeSucceeded, v1alpha1.BakeFailed, v1alpha1.BakeCancelled, "Pending",
	}
	allowed := map[promotion.Action][]v1alpha1.BakeStatus{
		promotion.StartBake:  {v1alpha1.BakeDeploying},
		promotion.FinishBake: {v1alpha1.BakeDeploying, v1alpha1.BakeInProgress},
		promotion.FailBake:   {v1alpha1.BakeDeploying, v1alpha1.BakeInProgress},
		promotion.Retry:      {v1alpha1.BakeFailed},
		promotion.Promote:    states,
		promotion.Supersede:  states,
		promotion.Adopt:      states,
		promotion.Wait:       states,
		promotion.Nothing:    states,
	}
	for action, froms := range allowed {
		for _, from := range states {
			t.Run(string(action)+" from "+string(from), func(t *testing.T) {
				in := given(rollout().BakeTime(time.Hour).Ledger("1.0.0", "1.1.0").History(entry("1.0.0").State(from))).in()
				_, err := promotion.Record(in, promotion.Decision{Outcome: promotion.Outcome{Action: action, Release: release("1.1.0").Obj()}})
				want := false
				for _, ok := range froms {
					want = want || ok == from
				}
				if got := err == nil; got != want {
					t.Errorf("recorded: %v (%v), want %v", got, err, want)
				}
			})
		}
	}
}

func TestOutcomeWithoutAPromotionFails(t *testing.T) {
	for _, action := range []promotion.Action{promotion.StartBake, promotion.FinishBake, promotion.FailBake, promotion.Retry} {
		t.Run(string(action), func(t *testing.T) {
			_, err := promotion.Record(given(rollout()).in(), promotion.Decision{Outcome: promotion.Outcome{Action: action}})
			if err == nil || !strings.Contains(err.Error(), "no promotion") {
				t.Errorf("got error %v, want one that says there is no promotion", err)
			}
		})
	}
}

func TestRecordLeavesItsInputAlone(t *testing.T) {
	in := given(rollout().Pin("1.0.0").BakeTime(time.Hour).Ledger("1.0.0", "1.1.0").History(entry("1.1.0").Baking(noon))).in()
	before := in.Rollout.DeepCopy()
	history, err := promotion.Record(in, promotion.Decide(in))
	if err != nil {
		t.Fatal(err)
	}
	history[1].Version.Tag, *history[1].ID, history[1].Timestamp = "changed", 99, metav1.Time{}
	diff(t, before, in.Rollout)
}

func TestSuccessAfterAFailureListsNoFailedChecks(t *testing.T) {
	continued := entry("1.0.0").Failed(v1alpha1.FailedHealthCheck{Name: "db", Namespace: "shop-prod"}).Deploying().BakeStart(eleven)
	in := given(rollout().BakeTime(30 * time.Minute).History(continued)).targets(applied("apps")).in()
	for _, want := range []v1alpha1.BakeStatus{v1alpha1.BakeInProgress, v1alpha1.BakeSucceeded} {
		history, err := promotion.Record(in, promotion.Decide(in))
		if err != nil {
			t.Fatal(err)
		}
		diff(t, want, history[0].State())
		diff(t, 0, len(history[0].FailedHealthChecks))
		in.Rollout.Status.History = history
	}
}
