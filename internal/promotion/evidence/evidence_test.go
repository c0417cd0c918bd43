// SPDX-License-Identifier: Apache-2.0

package evidence_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestEvidenceOfACheck(t *testing.T) {
	shop := rollout().Obj()
	other := fixture.MakeRollout("other").Obj()
	deploying := entry("1.1.0").ID(7).Deploying()
	baking := entry("1.1.0").ID(7).Baking(eleven)
	retried := entry("1.1.0").ID(7).Deploying().Retried(noon)
	old := wireTime(eleven) // the error that the reset removed
	mark := func(e *fixture.EntryBuilder, removed *metav1.Time) string {
		built := e.Obj()
		return evidence.ResetMark(&built, removed)
	}
	ours := func(c *fixture.HealthCheckBuilder) *fixture.HealthCheckBuilder {
		return c.Mark(shop, mark(deploying, nil))
	}
	oursAfterError := func(c *fixture.HealthCheckBuilder) *fixture.HealthCheckBuilder {
		return c.Mark(shop, mark(deploying, old))
	}
	for name, test := range map[string]struct {
		check *fixture.HealthCheckBuilder
		entry *fixture.EntryBuilder
		want  evidence.ProofState
	}{
		"a Healthy that was never reset is stale":           {check("db").Healthy(), deploying, evidence.Unreset},
		"so is an error that was never reset":               {check("db").Unhealthy().ErrorAt(one), deploying, evidence.Unreset},
		"and a check that says nothing":                     {check("db"), deploying, evidence.Unreset},
		"a fresh lastChangeTime does not replace the reset": {check("db").Healthy().ChangedAt(one), deploying, evidence.Unreset},
		"a reset for the promotion before does not count":   {check("db").Healthy().Mark(shop, mark(entry("1.0.0").ID(6), nil)), deploying, evidence.Unreset},
		"nor one for the same id, given again after a loss": {check("db").Healthy().Mark(shop, mark(entry("1.1.0").ID(7).At(noon), nil)), deploying, evidence.Unreset},
		"a reset that was only begun does not count": {
			check("db").Healthy().Mark(shop, evidence.BegunMark(to(deploying.Obj()), old)), deploying, evidence.Unreset,
		},
		"a reset by another Rollout does not count":          {check("db").Healthy().Mark(other, mark(deploying, nil)), deploying, evidence.Unreset},
		"a mark that nobody can read does not count":         {check("db").Healthy().Mark(shop, "7"), deploying, evidence.Unreset},
		"an empty mark does not count":                       {check("db").Healthy().Mark(shop, ""), deploying, evidence.Unreset},
		"a retry asks for a new reset":                       {check("db").Healthy().Mark(shop, mark(deploying, nil)), retried, evidence.Unreset},
		"what is said after the retry's reset counts":        {check("db").Healthy().Mark(shop, mark(retried, nil)), retried, evidence.Proven},
		"the state of the entry does not change what it is":  {ours(check("db").Healthy()), baking, evidence.Proven},
		"Healthy after the reset proves it":                  {ours(check("db").Healthy()), deploying, evidence.Proven},
		"so it does by a writer that sets no lastChangeTime": {ours(check("db").Healthy().ChangedAt(eleven)), deploying, evidence.Proven},
		"and by one that leaves the message of the reset":    {ours(check("db").Healthy().Message(evidence.ResetMessage)), deploying, evidence.Proven},
		"Pending decides nothing":                            {ours(check("db").Pending()), deploying, evidence.Undecided},
		"nor does a check that nobody writes":                {ours(check("db")), deploying, evidence.Undecided},
		"nor a status that nobody knows":                     {ours(check("db").State("Degraded")), deploying, evidence.Undecided},

		"an error after the reset disproves it":              {ours(check("db").Unhealthy().ErrorAt(noon)), deploying, evidence.Disproven},
		"even if the check is Healthy again":                 {ours(check("db").Healthy().ErrorAt(noon)), deploying, evidence.Disproven},
		"or Pending again":                                   {ours(check("db").Pending().ErrorAt(noon)), deploying, evidence.Disproven},
		"Unhealthy without a lastErrorTime disproves it":     {ours(check("db").Unhealthy()), deploying, evidence.Disproven},
		"also if the reset had removed one":                  {oursAfterError(check("db").Unhealthy()), deploying, evidence.Disproven},
		"the same error written again is the old failure":    {oursAfterError(check("db").Unhealthy().ErrorAt(eleven)), deploying, evidence.Undecided},
		"in whatever time zone it is written":                {oursAfterError(check("db").Unhealthy().ErrorAt(eleven.In(time.FixedZone("CET", 3600)))), deploying, evidence.Undecided},
		"and does not stand against a Healthy":               {oursAfterError(check("db").Healthy().ErrorAt(eleven)), deploying, evidence.Proven},
		"a later error is a new one":                         {oursAfterError(check("db").Unhealthy().ErrorAt(noon)), deploying, evidence.Disproven},
		"an older one has outlived the one that was removed": {oursAfterError(check("db").Unhealthy().ErrorAt(eleven.Add(-time.Minute))), deploying, evidence.Undecided},
		"during the bake, Unhealthy is enough":               {oursAfterError(check("db").Unhealthy().ErrorAt(eleven)), baking, evidence.Disproven},
		"during the bake, an old error alone proves nothing": {oursAfterError(check("db").Pending().ErrorAt(eleven)), baking, evidence.Undecided},
	} {
		t.Run(name, func(t *testing.T) {
			e := test.entry.Obj()
			proofs := evidence.Prove([]v1alpha1.HealthCheck{*test.check.Obj()}, shop.UID, &e)
			diff(t, test.want, proofs[0].State)
		})
	}
}

func TestResetMarkDistinguishesPromotions(t *testing.T) {
	for name, test := range map[string]struct {
		entry   *fixture.EntryBuilder
		removed *metav1.Time
		want    string
	}{
		"by their id, and by when they began":  {entry("1.1.0").ID(7), nil, "7at2026-03-02T11:00:00Z/"},
		"by their latest retry":                {entry("1.1.0").ID(7).Retried(noon), nil, "7at2026-03-02T11:00:00Z+2026-03-02T12:00:00Z/"},
		"without an id, by that alone":         {entry("1.1.0"), nil, "at2026-03-02T11:00:00Z/"},
		"and remembers the error it removed":   {entry("1.1.0").ID(7), wireTime(eleven), "7at2026-03-02T11:00:00Z/2026-03-02T11:00:00Z"},
		"in UTC":                               {entry("1.1.0").ID(7), wireTime(eleven.In(time.FixedZone("CET", 3600))), "7at2026-03-02T11:00:00Z/2026-03-02T11:00:00Z"},
		"without id, after a retry, all three": {entry("1.1.0").Retried(noon), wireTime(one), "at2026-03-02T11:00:00Z+2026-03-02T12:00:00Z/2026-03-02T13:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			e := test.entry.Obj()
			diff(t, test.want, evidence.ResetMark(&e, test.removed))
		})
	}
}

func TestEachCheckHasItsOwnProof(t *testing.T) {
	e, shop := entry("1.1.0").Deploying().Obj(), rollout().Obj()
	reset := func(c *fixture.HealthCheckBuilder) *fixture.HealthCheckBuilder {
		return c.Mark(shop, evidence.ResetMark(&e, nil))
	}
	checks := built(check("a").Healthy(), reset(check("b").Healthy()), reset(check("c").Unhealthy()), reset(check("d").Pending()))
	proofs := evidence.Prove(checks, shop.UID, &e)
	var got []evidence.ProofState
	for i, proof := range proofs {
		got = append(got, proof.State)
		if proof.Check != &checks[i] {
			t.Errorf("proof %d is about another check", i)
		}
	}
	diff(t, []evidence.ProofState{evidence.Unreset, evidence.Proven, evidence.Disproven, evidence.Undecided}, got)
	diff(t, 0, len(evidence.Prove(nil, shop.UID, &e)))
}

func TestUnhealthyLeavesItsInputAlone(t *testing.T) {
	checks := built(check("a").Healthy(), check("b").Unhealthy(), check("c"), check("d").Unhealthy())
	unhealthy := evidence.Unhealthy(checks)
	diff(t, []string{"b", "d"}, []string{unhealthy[0].Name, unhealthy[1].Name})
	diff(t, "a", checks[0].Name)
	diff(t, 4, len(checks))
}

// A writer like the datadog-controller sets lastErrorTime about once a second while its
// monitor alerts, and never sets lastChangeTime or message.
func TestWriterThatOnlySetsStatusAndErrorTime(t *testing.T) {
	e := entry("1.1.0").ID(7).Deploying().Obj()
	shop := rollout().Obj()
	c := check("datadog-check-latency").Unhealthy().ErrorAt(noon).Obj()
	state := func() evidence.ProofState {
		return evidence.Prove([]v1alpha1.HealthCheck{*c}, shop.UID, &e)[0].State
	}
	diff(t, evidence.Unreset, state())

	reset(c, shop, &e, noon)
	diff(t, evidence.Undecided, state())

	c.Status.Status = v1alpha1.HealthStatusHealthy
	diff(t, evidence.Proven, state())

	c.Status.Status, c.Status.LastErrorTime = v1alpha1.HealthStatusUnhealthy, wireTime(noon.Add(time.Second))
	diff(t, evidence.Disproven, state())

	c.Status.Status = v1alpha1.HealthStatusHealthy // the writer never removes lastErrorTime
	diff(t, evidence.Disproven, state())
}

// A reset takes three writes if there is an error to remove, and two otherwise. Wherever
// the controller dies between them, the removed error is not forgotten.
func TestResetSurvivesACrash(t *testing.T) {
	e := entry("1.1.0").ID(7).Deploying().Obj()
	shop := rollout().Obj()
	for crash := range 4 {
		t.Run(fmt.Sprintf("after write %d", crash), func(t *testing.T) {
			c := check("db").Unhealthy().ErrorAt(eleven).Mark(shop, evidence.ResetMark(to(entry("1.0.0").ID(6).Obj()), wireTime(noon))).Obj()
			state := func() evidence.ProofState {
				return evidence.Prove([]v1alpha1.HealthCheck{*c}, shop.UID, &e)[0].State
			}
			for _, write := range fixture.ResetWrites(c, shop, &e, noon)[:crash] {
				write()
			}
			if state() == evidence.Unreset {
				reset(c, shop, &e, noon)
			}
			diff(t, evidence.Undecided, state())
			diff(t, v1alpha1.HealthStatusPending, c.Status.Status)
			diff(t, (*metav1.Time)(nil), c.Status.LastErrorTime)

			c.Status.Status, c.Status.LastErrorTime = v1alpha1.HealthStatusUnhealthy, wireTime(eleven)
			diff(t, evidence.Undecided, state()) // the same error, repeated by its writer
		})
	}
}

func TestCompletedReset(t *testing.T) {
	this, before := to(entry("1.1.0").ID(7).Obj()), to(entry("1.0.0").ID(6).Obj())
	for name, test := range map[string]struct {
		begun string
		want  *metav1.Time
	}{
		"the error of the reset that was begun": {evidence.BegunMark(this, wireTime(eleven)), wireTime(eleven)},
		"no error, if none was begun":           {"", nil},
		"no error of another promotion's reset": {evidence.BegunMark(before, wireTime(eleven)), nil},
		"no error of a reset that is complete":  {evidence.ResetMark(this, wireTime(eleven)), nil},
		"no error of what nobody can read":      {"7", nil},
	} {
		t.Run(name, func(t *testing.T) {
			diff(t, evidence.ResetMark(this, test.want), evidence.CompleteMark(this, test.begun))
		})
	}
}

// reset resets a check as the protocol of HealthChecks requires.
func reset(c *v1alpha1.HealthCheck, r *v1alpha1.Rollout, e *v1alpha1.DeploymentHistoryEntry, now time.Time) {
	for _, write := range fixture.ResetWrites(c, r, e, now) {
		write()
	}
}
