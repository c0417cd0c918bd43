// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// shop is the Rollout whose resets count.
func shop() *v1alpha1.Rollout { return rollout().Obj() }

func rate(name string) *fixture.HealthCheckBuilder {
	return check(name).Prometheus("rate", "value < 1")
}

func TestChecksThatAskTheApplicationAreResetOnceItIsRolledOut(t *testing.T) {
	for name, test := range map[string]struct {
		given *situation
		want  []int
	}{
		"the others come first": {
			given(deploying()).checks(check("apps").Kustomization(), rate("errors"), check("status").Object("v1", "Pod", "a"), check("web").HTTP("http://web"), check("ci")),
			[]int{0, 2, 4},
		},
		"then these, as soon as all are proven": {
			given(deploying()).resetChecks(check("apps").Kustomization().Healthy(), check("status").Object("v1", "Pod", "a").Healthy()).
				checks(rate("errors"), check("web").HTTP("http://web")),
			[]int{2, 3},
		},
		"and not while one is Pending": {
			given(deploying()).resetChecks(check("apps").Kustomization().Healthy(), check("status").Object("v1", "Pod", "a").Pending()).checks(rate("errors")),
			[]int{},
		},
		"they do not wait for those of other writers": {
			given(deploying()).resetChecks(check("ci").Pending()).checks(rate("errors")), []int{1},
		},
		"without such checks they are reset at once": {
			given(deploying()).checks(rate("errors")), []int{0},
		},
		"a check whose block is missing is another writer's": {
			given(deploying()).resetChecks(check("apps").Kustomization().Pending()).checks(check("errors").Class("prometheus")), []int{1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, promotion.Decide(test.given.targets(applied("apps")).in()).Resets)
		})
	}
}

func TestStatusAboutAnotherReleaseProvesNothing(t *testing.T) {
	deploying := entry("1.1.0").Version(release("1.1.0").Digest("sha256:aa").Obj()).ID(7).Deploying()
	built := deploying.Obj()
	ours := func(c *fixture.HealthCheckBuilder) *fixture.HealthCheckBuilder {
		return c.Mark(shop(), evidence.ResetMark(&built, nil))
	}
	for name, test := range map[string]struct {
		check *fixture.HealthCheckBuilder
		want  evidence.ProofState
	}{
		"another tag":                    {ours(check("ci").Healthy().About("1.0.0", "")), evidence.Undecided},
		"an error of another tag":        {ours(check("ci").Unhealthy().ErrorAt(noon).About("1.0.0", "")), evidence.Undecided},
		"another digest of the same tag": {ours(check("ci").Healthy().About("1.1.0", "sha256:bb")), evidence.Undecided},
		"the same":                       {ours(check("ci").Healthy().About("1.1.0", "sha256:aa")), evidence.Proven},
		"the same tag":                   {ours(check("ci").Healthy().About("1.1.0", "")), evidence.Proven},
		"the same digest":                {ours(check("ci").Healthy().About("", "sha256:aa")), evidence.Proven},
		"nothing that is said":           {ours(check("ci").Healthy().About("", "")), evidence.Proven},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, test.want, evidence.Prove([]v1alpha1.HealthCheck{*test.check.Obj()}, shop().UID, &built)[0].State)
		})
	}
	unknown := entry("1.1.0").ID(7).Deploying().Obj()
	proofs := evidence.Prove([]v1alpha1.HealthCheck{*check("ci").Healthy().About("1.1.0", "sha256:bb").Mark(shop(), evidence.ResetMark(&unknown, nil)).Obj()}, shop().UID, &unknown)
	diff(t, evidence.Proven, proofs[0].State)
}

func TestCheckThatCannotBeMeasuredHoldsPromotions(t *testing.T) {
	const problem = "spec.prometheus.condition: undeclared reference to 'valu'"
	hold := []verdict.Hold{{
		Reason: v1alpha1.HealthCheckInvalidReason, Message: "HealthCheck shop-prod/errors cannot be measured: " + problem,
	}}
	for name, test := range map[string]struct {
		check *fixture.HealthCheckBuilder
		want  []verdict.Hold
	}{
		"always":                     {rate("errors").Healthy().Problem(problem), hold},
		"not if it is not enforced":  {rate("errors").Healthy().Problem(problem).Enforced(false), nil},
		"not if it can":              {rate("errors").Healthy(), nil},
		"not if another measures it": {check("errors").Class("prometheus").Healthy().Problem(problem), nil},
	} {
		t.Run(name, func(t *testing.T) {
			candidates := promotion.Decide(given(upgrade()).checks(test.check).in()).Candidates
			diff(t, test.want, candidates[0].Holds)
		})
	}
	slow := promotion.Decide(given(upgrade().DeployTimeout(time.Minute)).checks(rate("errors").Healthy()).in()).Candidates
	diff(t, []verdict.Hold{{
		Reason: v1alpha1.HealthCheckInvalidReason,
		Message: "HealthCheck shop-prod/errors cannot prove a release in time: it is Healthy 1m after a release was applied at the earliest, " +
			"and deployTimeout is 1m: use a longer deployTimeout, or a shorter delay or interval",
	}}, slow[0].Holds)
	pinned := promotion.Decide(given(upgrade().Pin("1.1.0")).checks(rate("errors").Healthy().Problem(problem)).in())
	diff(t, promotion.Promote, pinned.Action)
}

func TestOutcomeSaysWhatWasMeasured(t *testing.T) {
	d := promotion.Decide(given(deploying()).targets(applied("apps")).resetChecks(
		rate("errors").Healthy().Measured(eleven, "0.5", v1alpha1.MeasurementGood).Measured(noon, "0.002", v1alpha1.MeasurementGood), check("ci").Healthy(),
	).in())
	diff(t, "applied and healthy (2 HealthChecks: errors 0.002)", d.Message)
}

func TestRolloutAwaitsWhatWasResetForItsRunningPromotion(t *testing.T) {
	of := func(e *fixture.EntryBuilder) string {
		built := e.Obj()
		return evidence.ResetMark(&built, nil)
	}
	now := entry("1.1.0").ID(7).Deploying()
	running := rollout().History(entry("1.1.0").ID(7).Deploying()).Obj()
	for name, test := range map[string]struct {
		rollout *v1alpha1.Rollout
		mark    string
		want    bool
	}{
		"deploying":                  {running, of(now), true},
		"baking":                     {rollout().History(entry("1.1.0").ID(7).Baking(eleven)).Obj(), of(now), true},
		"succeeded":                  {rollout().History(entry("1.1.0").ID(7).Succeeded()).Obj(), of(now), false},
		"reset for the one before":   {running, of(entry("1.0.0").ID(6)), false},
		"reset before the retry":     {rollout().History(entry("1.1.0").ID(7).Deploying().Retried(noon)).Obj(), of(now), false},
		"a reset that is not done":   {running, of(now) + "/begun", false},
		"never reset":                {running, "", false},
		"nothing was ever promoted":  {rollout().Obj(), of(now), false},
		"reset for another Rollout":  {withUID(running, "other"), of(now), false},
		"a mark that nobody can use": {running, "7", false},
	} {
		t.Run(name, func(t *testing.T) {
			c := check("errors").Mark(shop(), test.mark).Obj()
			diff(t, test.want, evidence.Awaits(test.rollout, c))
			diff(t, name == "a reset that is not done", evidence.Resets(test.rollout, c))
		})
	}
}

func withUID(rollout *v1alpha1.Rollout, uid types.UID) *v1alpha1.Rollout {
	other := rollout.DeepCopy()
	other.UID = uid
	return other
}

func TestResetByNamesThoseThatHaveBegun(t *testing.T) {
	e := entry("1.1.0").ID(7).Deploying().Obj()
	failed := wireTime(noon.Add(-time.Hour))
	c := check("errors").Mark(shop(), evidence.ResetMark(&e, nil)).
		Mark(withUID(shop(), "begun"), evidence.BegunMark(&e, failed)).Mark(withUID(shop(), "a"), evidence.ResetMark(&e, nil)).
		Mark(withUID(shop(), "odd"), "7").Obj()
	diff(t, []types.UID{"a", "begun", shop().UID}, evidence.ResetBy(c))
}
