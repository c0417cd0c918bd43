// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestStatusAboutAnotherReleaseProvesNothing(t *testing.T) {
	deploying := entry("1.1.0").Version(release("1.1.0").Digest("sha256:aa").Obj()).ID(7).Deploying()
	built := deploying.Obj()
	ours := func(c *fixture.HealthCheckBuilder) *fixture.HealthCheckBuilder {
		return c.Mark(rollout().Obj(), evidence.ResetMark(&built, nil))
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
			diff(t, test.want, evidence.Prove([]v1alpha1.HealthCheck{*test.check.Obj()}, rollout().Obj().UID, &built)[0].State)
		})
	}
	unknown := entry("1.1.0").ID(7).Deploying().Obj()
	proofs := evidence.Prove([]v1alpha1.HealthCheck{*check("ci").Healthy().About("1.1.0", "sha256:bb").Mark(rollout().Obj(), evidence.ResetMark(&unknown, nil)).Obj()}, rollout().Obj().UID, &unknown)
	diff(t, evidence.Proven, proofs[0].State)
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
			c := check("errors").Mark(rollout().Obj(), test.mark).Obj()
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
	c := check("errors").Mark(rollout().Obj(), evidence.ResetMark(&e, nil)).
		Mark(withUID(rollout().Obj(), "begun"), evidence.BegunMark(&e, failed)).Mark(withUID(rollout().Obj(), "a"), evidence.ResetMark(&e, nil)).
		Mark(withUID(rollout().Obj(), "odd"), "7").Obj()
	diff(t, []types.UID{"a", "begun", rollout().Obj().UID}, evidence.ResetBy(c))
}
