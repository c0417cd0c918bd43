// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const (
	badDigest = "sha256:3f2a9c1d5b7e8f60a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8091a2b3c4d5e"
	badName   = "sha256-3f2a9c1d5b7e8f60a1b2"
)

// badEntry is the entry of 1.2.0, whose content is known.
func badEntry() *fixture.EntryBuilder {
	return unhealthyRelease().Version(release("1.2.0").Digest(badDigest).Obj()).BakeEnd(noon)
}

// reporting returns a Rollout that reports its failures and goes back by itself.
func reporting(history ...*fixture.EntryBuilder) *situation {
	s := given(rollout().Ledger("1.1.0", "1.2.0").RollsBack(ignoringBarriers).History(history...))
	s.input.Rollout.Spec.Quarantine = &v1alpha1.RolloutQuarantine{}
	return s
}

// quarantineOfBad returns the quarantine of 1.2.0, without a failure.
func quarantineOfBad(changes ...quarantineOf) promotion.Quarantine {
	q := promotion.Quarantine{Name: "ReleaseQuarantine " + badName, Spec: v1alpha1.ReleaseQuarantineSpec{Digest: badDigest}, Managed: true}
	for _, change := range changes {
		change(&q)
	}
	return q
}

// lists sets a quarantine that lists the failure of 1.2.0 with an outcome.
func (s *situation) lists(outcome v1alpha1.IncidentOutcome) *situation {
	q := quarantineOfBad()
	q.Status.Incidents = []v1alpha1.QuarantineIncident{{
		Rollout: v1alpha1.IncidentRollout{UID: s.input.Rollout.UID}, EntryID: 7, Outcome: outcome,
	}}
	return s.quarantined(q)
}

func TestFailureIsReported(t *testing.T) {
	back := func() *fixture.EntryBuilder { return entry("1.1.0").ID(8).At(noon).Back("1.2.0", 7, 5) }
	good := func() *fixture.EntryBuilder { return entry("1.1.0").ID(5).Succeeded() }
	const none = v1alpha1.IncidentOutcome("")
	for name, test := range map[string]struct {
		given *situation
		want  v1alpha1.IncidentOutcome
		known bool
	}{
		"open while it may go back":         {reporting(badEntry(), good()), v1alpha1.IncidentOpen, false},
		"open while the rollback runs":      {reporting(back().Deploying(), badEntry(), good()), v1alpha1.IncidentOpen, false},
		"without an outcome if nobody goes": {reporting(badEntry().Due(v1alpha1.CauseHealthCheckFailed, noon).ID(7), good()), v1alpha1.IncidentOpen, false},
		"not twice":                         {reporting(badEntry(), good()).lists(v1alpha1.IncidentOpen), none, false},
		"not a mere timeout": {
			reporting(badEntry().Due(v1alpha1.CauseDeployTimeout, noon), good()), none, false,
		},
		"not after an hour":                     {reporting(badEntry(), good()).at(noon.Add(time.Hour + instant)), none, false},
		"not if something else came after it":   {reporting(entry("1.1.0").ID(9).Succeeded(), badEntry(), good()), none, false},
		"not if its content is not known":       {reporting(unhealthyRelease().BakeEnd(noon), good()), none, false},
		"restored":                              {reporting(back().Succeeded(), badEntry(), good()).lists(v1alpha1.IncidentOpen), v1alpha1.IncidentRestored, true},
		"not restored, once that is overdue":    {reporting(back().Deploying(), badEntry(), good()).lists(v1alpha1.IncidentOpen).at(noon.Add(16 * time.Minute)), v1alpha1.IncidentNotRestored, true},
		"restored after all":                    {reporting(back().Succeeded(), badEntry(), good()).lists(v1alpha1.IncidentNotRestored), v1alpha1.IncidentRestored, true},
		"unknown, if something else was chosen": {reporting(entry("1.1.0").ID(9).Deploying(), badEntry(), good()).lists(v1alpha1.IncidentOpen), v1alpha1.IncidentUnknown, true},
		"unknown, if the rollback was replaced": {
			reporting(entry("1.3.0").ID(9).Deploying(), back().Cancelled(), badEntry(), good()).lists(v1alpha1.IncidentOpen), v1alpha1.IncidentUnknown, true,
		},
		"again after a retry": {
			reporting(badEntry().Retried(noon), good()).lists(v1alpha1.IncidentUnknown), v1alpha1.IncidentOpen, false,
		},
		"not to one that a user has created": {
			reporting(badEntry(), good()).quarantined(quarantineOfBad(func(q *promotion.Quarantine) { q.Managed = false })), none, false,
		},
		"not to one that a user has lifted": {
			reporting(badEntry(), good()).quarantined(quarantineOfBad(func(q *promotion.Quarantine) { q.Spec.Lifted = true })), none, false,
		},
		"restored, wherever it was reported": {
			func() *situation {
				s := reporting(back().Succeeded(), unhealthyRelease().BakeEnd(noon), good()).lists(v1alpha1.IncidentOpen)
				s.input.Rollout.Status.AvailableReleases[1].Digest = to("sha256:" + strings.Repeat("0", 64))
				return s
			}(), v1alpha1.IncidentRestored, true,
		},
		"unknown, if it was retried":      {reporting(badEntry().Retried(noon).Deploying(), good()).lists(v1alpha1.IncidentOpen), v1alpha1.IncidentUnknown, true},
		"unknown, if the history was cut": {reporting(entry("1.1.0").ID(9).Succeeded()).lists(v1alpha1.IncidentOpen), v1alpha1.IncidentUnknown, true},
		"nothing from before it failed": {
			reporting(entry("1.2.0").ID(7).Deploying(), good()).lists(v1alpha1.IncidentOpen), none, false,
		},
		"nothing from before it was promoted": {reporting(good()).lists(v1alpha1.IncidentOpen), none, false},
		"nothing without a history":           {reporting().lists(v1alpha1.IncidentOpen), none, false},
		"no outcome twice":                    {reporting(back().Succeeded(), badEntry(), good()).lists(v1alpha1.IncidentRestored), none, false},
	} {
		t.Run(name, func(t *testing.T) {
			reports := promotion.Reports(test.given.in())
			if test.want == none {
				diff(t, []promotion.Report(nil), reports)
				return
			}
			if len(reports) != 1 {
				t.Fatalf("got %d reports", len(reports))
			}
			diff(t, badName, reports[0].Name)
			diff(t, badDigest, reports[0].Digest)
			diff(t, test.want, reports[0].Incident.Outcome)
			diff(t, test.known, reports[0].Known)
			diff(t, int64(7), reports[0].Incident.EntryID)
		})
	}
}

func TestNothingIsReportedUnlessThatIsWanted(t *testing.T) {
	s := reporting(badEntry(), entry("1.1.0").ID(5).Succeeded())
	s.input.Rollout.Spec.Quarantine = nil
	diff(t, []promotion.Report(nil), promotion.Reports(s.in()))
	s.input.Rollout.Spec.Quarantine = &v1alpha1.RolloutQuarantine{Report: v1alpha1.ReportNothing}
	diff(t, []promotion.Report(nil), promotion.Reports(s.in()))
}

// counts sets a quarantine that counts the failure of 1.2.0 and, since then, those of ten
// other Rollouts.
func (s *situation) counts() *situation {
	q := quarantineOfBad()
	for _, uid := range append([]types.UID{s.input.Rollout.UID}, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j") {
		q.Status, _ = quarantine.Report(q.Status, v1alpha1.QuarantineIncident{
			Rollout: v1alpha1.IncidentRollout{UID: uid}, EntryID: 7, Outcome: v1alpha1.IncidentOpen,
		}, nil)
	}
	return s.quarantined(q)
}

func TestHistoryNamesTheQuarantineThatListsAFailure(t *testing.T) {
	for name, test := range map[string]struct {
		given *situation
		want  string
	}{
		"once it has counted it": {reporting(badEntry(), entry("1.1.0").ID(5).Succeeded()).counts(), badName},
		"not an earlier one":     {reporting(badEntry().ID(8), entry("1.1.0").ID(5).Succeeded()).counts(), ""},
		"once it lists it":       {reporting(badEntry(), entry("1.1.0").ID(5).Succeeded()).lists(v1alpha1.IncidentOpen), badName},
		"not before":             {reporting(badEntry(), entry("1.1.0").ID(5).Succeeded()), ""},
	} {
		t.Run(name, func(t *testing.T) {
			in := test.given.at(noon.Add(-time.Minute)).in()
			in.Rollout.Spec.Rollback = nil
			history, err := promotion.Record(in, promotion.Decide(in))
			if err != nil {
				t.Fatal(err)
			}
			diff(t, test.want, history[0].Quarantine)
		})
	}
}

// A retry that fails is another failure, so it must not look as if it was reported.
func TestRetryForgetsTheQuarantine(t *testing.T) {
	s := reporting(badEntry(), entry("1.1.0").ID(5).Succeeded())
	s.input.Rollout.Status.History[0].Quarantine = badName
	s.input.Rollout.Annotations = map[string]string{v1alpha1.RetryAnnotation: ""}
	history, err := promotion.Record(s.in(), promotion.Decide(s.in()))
	if err != nil {
		t.Fatal(err)
	}
	diff(t, v1alpha1.BakeDeploying, history[0].State())
	diff(t, "", history[0].Quarantine)
}

// Many Rollouts may fail at once, and a quarantine lists few failures. So the history names
// it before the cache can show that it lists this one.
func TestReportIsAcknowledged(t *testing.T) {
	s := reporting(entry("1.1.0").ID(8).At(noon).Back("1.2.0", 7, 5).Deploying(), badEntry(), entry("1.1.0").ID(5).Succeeded())
	reports := promotion.Reports(s.in())
	diff(t, 1, len(reports))
	promotion.Acknowledge(s.input.Rollout.Status.History, reports[0])
	diff(t, []string{"", badName, ""}, quarantinesOf(s.input.Rollout))
	diff(t, []promotion.Report(nil), promotion.Reports(s.in()))

	s.input.Rollout.Status.History[1].Quarantine = ""
	reports[0].Incident.LastRetryTimestamp = wireTime(noon)
	promotion.Acknowledge(s.input.Rollout.Status.History, reports[0])
	diff(t, []string{"", "", ""}, quarantinesOf(s.input.Rollout))
}

// Fifty Rollouts fail at the same second, and the cache shows nothing of it for a while.
// Each failure counts once, and those that the quarantine has no room for come to rest, too.
func TestFiftyFailuresAtOnceCountOnceEach(t *testing.T) {
	q := quarantineOfBad()
	fleet := make([]*situation, 50)
	for i := range fleet {
		fleet[i] = reporting(badEntry(), entry("1.1.0").ID(5).Succeeded())
		fleet[i].input.Rollout.UID = types.UID(fmt.Sprint(i))
	}
	pass := func(s *situation) {
		for _, report := range promotion.Reports(s.in()) {
			next, changed := quarantine.Report(q.Status, report.Incident, s.input.Rollout.Spec.Quarantine)
			diff(t, true, changed)
			q.Status = next
			promotion.Acknowledge(s.input.Rollout.Status.History, report)
		}
	}
	for range 3 {
		for _, s := range fleet {
			pass(s)
		}
	}
	diff(t, int32(50), q.Status.Strikes)
	diff(t, 10, len(q.Status.Incidents))
	for _, s := range fleet {
		diff(t, []promotion.Report(nil), promotion.Reports(s.quarantined(q).in()))
	}
}

func quarantinesOf(rollout *v1alpha1.Rollout) []string {
	var all []string
	for _, entry := range rollout.Status.History {
		all = append(all, entry.Quarantine)
	}
	return all
}
