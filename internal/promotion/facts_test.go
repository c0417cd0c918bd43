// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// written is what an entry says in fields.
type written struct {
	Grounds  v1alpha1.Grounds
	Lifted   []v1alpha1.LiftedHold
	Recovery v1alpha1.Recovery
	Message  string
}

func writtenIn(e v1alpha1.DeploymentHistoryEntry) written {
	return written{e.Grounds, e.Lifted, e.Recovery, *e.Message}
}

func TestEntrySaysInFieldsWhyItWasMade(t *testing.T) {
	const newest = "the newest eligible release of ImagePolicy shop"
	failed := func() *fixture.RolloutBuilder {
		return rollout().Ledger("1.0.0", "1.1.0", "1.2.0").History(entry("1.1.0").Failed(), entry("1.0.0").Succeeded())
	}
	for name, test := range map[string]struct {
		given *situation
		want  written
	}{
		"the newest": {given(upgrade()), written{v1alpha1.GroundsNewest, nil, "", newest}},
		"the next": {
			given(upgrade().Strategy(v1alpha1.ReleaseNext)), written{v1alpha1.GroundsNext, nil, "", "the next release of ImagePolicy shop"},
		},
		"the first": {
			given(rollout().Ledger("1.0.0")), written{v1alpha1.GroundsFirst, nil, "", "the first release of this environment, from ImagePolicy shop"},
		},
		"a pin": {given(upgrade().Pin("1.1.0")), written{v1alpha1.GroundsPinned, nil, "", "pinned manually in spec.wantedVersion"}},
		"a pin, in the words of a user that look like ours": {
			given(upgrade().Pin("1.1.0").Annotate(v1alpha1.DeployMessageAnnotation, newest)), written{v1alpha1.GroundsPinned, nil, "", newest},
		},
		"a force": {
			given(upgrade().Annotate(v1alpha1.ForceDeployAnnotation, "1.1.0")),
			written{v1alpha1.GroundsForced, nil, "", "requested with rollout.kuberik.com/force-deploy"},
		},
		"past gates": {
			given(upgrade().Annotate(v1alpha1.BypassGatesAnnotation, "1.1.0")).gates(gate("qa").Closed()),
			written{v1alpha1.GroundsNewest, []v1alpha1.LiftedHold{v1alpha1.LiftedGates}, "", newest + "; gates bypassed manually"},
		},
		"past a failure": {
			given(failed().Annotate(v1alpha1.UnblockFailedAnnotation, "true")),
			written{v1alpha1.GroundsNewest, []v1alpha1.LiftedHold{v1alpha1.LiftedFailure}, v1alpha1.RecoveryFromFailure, newest + "; a failure bypassed manually"},
		},
		"past the wait for a user": {
			given(rollout().Releases(known("1.3.0"), known("1.4.0")).History(entry("1.3.0").Succeeded()).Annotate(v1alpha1.PromoteAnnotation, "1.4.0")).
				environments(prod(after("staging", proven("1.4.0"))).manual()),
			written{v1alpha1.GroundsNewest, []v1alpha1.LiftedHold{v1alpha1.LiftedPromotion}, "", newest},
		},
		"next to an Unhealthy check": {
			given(upgrade().Pin("1.1.0")).checks(check("db").Unhealthy()),
			written{v1alpha1.GroundsPinned, nil, v1alpha1.RecoveryWhileUnhealthy, "pinned manually in spec.wantedVersion"},
		},
		"adopted": {
			given(rollout().Ledger("1.0.0")).owned("1.0.0"),
			written{v1alpha1.GroundsAdopted, nil, "", "the history was lost; the targets carry this version"},
		},
		"a rollback": {
			given(failedHere(entry("1.1.0").ID(5).Succeeded())),
			written{v1alpha1.GroundsRollback, nil, v1alpha1.RecoveryFromFailure, "rolled back from 1.2.0 (#7): HealthCheck shop-prod/db: down"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, writtenIn(decideAndRecord(t, test.given)[0]))
		})
	}
}

// A promotion that a user helped must not count as a failure of the controller, however
// its message is worded or shortened. A message of a user must not count as ours.
func TestLimitOfFailuresDoesNotDependOnMessages(t *testing.T) {
	cut := "the newest eligible release of ImagePolicy " + strings.Repeat("x", 85)
	helped := func(tag string) *fixture.EntryBuilder {
		return entry(tag).Failed().Message(cut).By(v1alpha1.TriggeredBySystem, promotion.SystemName).Grounds(v1alpha1.GroundsNewest, v1alpha1.LiftedFailure)
	}
	pinned := func(tag string) *fixture.EntryBuilder {
		return entry(tag).Failed().Message("the newest eligible release of ImagePolicy shop").
			By(v1alpha1.TriggeredBySystem, promotion.SystemName).Grounds(v1alpha1.GroundsPinned)
	}
	for name, failure := range map[string]func(string) *fixture.EntryBuilder{"helped, and cut": helped, "pinned, in our words": pinned} {
		t.Run(name, func(t *testing.T) {
			back := entry("1.1.0").Back("1.2.0", 7, 5).Succeeded()
			r := rollout().Ledger("1.1.0", "1.5.0").RollsBack().
				History(back, failure("1.4.0"), failure("1.3.0"), failure("1.2.0"), entry("1.1.0").Succeeded())
			diff(t, map[string][]string{"1.5.0": {}}, reasons(promotion.Decide(given(r).in())))
		})
	}
}

// A user's message that ends as ours do must not keep a bypass from being answered.
func TestBypassIsAnsweredWhateverTheMessageIs(t *testing.T) {
	r := rollout().BakeTime(2*time.Hour).Ledger("1.0.0").Annotate(v1alpha1.BypassGatesAnnotation, "1.0.0").
		History(entry("1.0.0").Baking(eleven).Grounds(v1alpha1.GroundsPinned).Message("x; gates bypassed manually"))
	d := promotion.Decide(given(r).in())
	diff(t, []verdict.Note{{
		Reason: v1alpha1.BypassNotNeededReason, Message: "rollout.kuberik.com/bypass-gates names 1.0.0, which is deployed already",
	}}, d.Answers)
}

// Other clients keep only the fields that they know.
func TestFactsThatAnotherClientHasErasedAreRestored(t *testing.T) {
	system := func(tag, message string) *fixture.EntryBuilder {
		return entry(tag).Message(message).By(v1alpha1.TriggeredBySystem, promotion.SystemName)
	}
	failed := entry("1.2.0").ID(7).Failed()
	for name, test := range map[string]struct {
		history []*fixture.EntryBuilder
		want    written
	}{
		"the newest": {
			[]*fixture.EntryBuilder{system("1.2.0", "the newest eligible release of ImagePolicy shop; a failure bypassed manually")},
			written{v1alpha1.GroundsNewest, []v1alpha1.LiftedHold{v1alpha1.LiftedFailure}, "", ""},
		},
		"a rollback": {
			[]*fixture.EntryBuilder{system("1.1.0", "rolled back from 1.2.0 (#7): down"), failed},
			written{v1alpha1.GroundsRollback, nil, v1alpha1.RecoveryFromFailure, ""},
		},
		"not a rollback, without the failure": {
			[]*fixture.EntryBuilder{system("1.1.0", "rolled back from 1.2.0 (#7): down"), entry("1.2.0").ID(7).Succeeded()}, written{},
		},
		"not a rollback of a user": {
			[]*fixture.EntryBuilder{entry("1.1.0").Message("rolled back from 1.2.0 (#7)").By(v1alpha1.TriggeredByUser, "ann"), failed},
			written{},
		},
		"content that was pushed again": {
			[]*fixture.EntryBuilder{system("1.2.0", "tag 1.2.0 was pushed again, and OCIRepository a/b has pulled it: it is c now, and was d")},
			written{v1alpha1.GroundsMoved, nil, "", ""},
		},
		"nothing of what others have written": {[]*fixture.EntryBuilder{system("1.2.0", "Automatic deployment")}, written{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := rollout().History(test.history...).Obj()
			before := r.DeepCopy()
			got := writtenIn(promotion.WithFacts(r).Status.History[0])
			got.Message = ""
			diff(t, test.want, got)
			diff(t, before, r)
		})
	}
}

// A release whose bake has begun was applied by then, and not when this is next looked at.
func TestTimeOfApplyThatAnotherClientHasErasedIsRestored(t *testing.T) {
	r := rollout().History(entry("1.2.0").Baking(eleven).Message("pinned manually in spec.wantedVersion"))
	diff(t, r.Obj().Current().BakeStartTime, promotion.WithFacts(r.Obj()).Current().AppliedTime)
}

func TestCauseThatAnotherClientHasErasedIsRestored(t *testing.T) {
	down := failedCheck("db", "down")
	ours := func(outcome string, failed ...v1alpha1.FailedHealthCheck) *fixture.EntryBuilder {
		return entry("1.1.0").Failed(failed...).Because(outcome).Message("pinned manually in spec.wantedVersion")
	}
	for name, test := range map[string]struct {
		entry *fixture.EntryBuilder
		want  v1alpha1.FailureCause
	}{
		"a HealthCheck": {ours("HealthCheck shop-prod/db: down", down), v1alpha1.CauseHealthCheckFailed},
		"the deadline":  {ours("not applied and healthy within 5m0s: x", down), v1alpha1.CauseDeployTimeout},
		"without a HealthCheck it is the deadline": {ours("x"), v1alpha1.CauseDeployTimeout},
		"nothing of what others have written":      {entry("1.1.0").Failed(down).Message("Automatic deployment"), ""},
		"nothing, if nothing failed":               {entry("1.1.0").Succeeded().Message("pinned manually in spec.wantedVersion"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, promotion.WithFacts(rollout().History(test.entry).Obj()).Status.History[0].Cause)
		})
	}
}

// How the release was proven counts what was there. Nothing proves nothing.
func TestProofIsCounted(t *testing.T) {
	for name, test := range map[string]struct {
		given *situation
		want  *v1alpha1.Proof
	}{
		"targets and HealthChecks": {
			given(baking().BakeTime(time.Minute).SelectAllChecks()).targets(applied("apps"), applied("infra")).resetChecks(check("db").Healthy()),
			&v1alpha1.Proof{Targets: 2, HealthChecks: 1},
		},
		"neither":               {given(baking().BakeTime(time.Minute)), &v1alpha1.Proof{}},
		"absent while it bakes": {given(baking().BakeTime(2 * time.Hour)).targets(applied("apps")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, decideAndRecord(t, test.given)[0].ProvenBy)
		})
	}
}
