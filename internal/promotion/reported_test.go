// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
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
	s := given(rollout().Ledger("1.1.0", "1.2.0").RollsBack().History(history...))
	s.input.Rollout.Spec.Quarantine = &v1alpha1.RolloutQuarantine{}
	return s
}

// quarantineOfBad returns the quarantine of 1.2.0, without a failure.
func quarantineOfBad(changes ...quarantineOf) quarantined.Quarantine {
	q := quarantined.Quarantine{Name: "ReleaseQuarantine " + badName, Spec: v1alpha1.ReleaseQuarantineSpec{Digest: badDigest}, Managed: true}
	for _, change := range changes {
		change(&q)
	}
	return q
}

// lists sets a quarantine that lists the failure of 1.2.0.
func (s *situation) lists() *situation {
	q := quarantineOfBad()
	q.Status.Failures = []v1alpha1.ReleaseFailure{{Rollout: v1alpha1.ReportingRollout{UID: s.input.Rollout.UID}, EntryID: 7}}
	return s.quarantined(q)
}

func TestFailureIsReported(t *testing.T) {
	back := func() *fixture.EntryBuilder { return entry("1.1.0").ID(8).At(noon).Back("1.2.0", 7, 5) }
	good := func() *fixture.EntryBuilder { return entry("1.1.0").ID(5).Succeeded() }
	because := func(cause v1alpha1.FailureCause) *fixture.EntryBuilder { return badEntry().Due(cause, noon) }
	for name, test := range map[string]struct {
		given *situation
		want  bool
	}{
		"while it may go back":                 {reporting(badEntry(), good()), true},
		"while the rollback runs":              {reporting(back().Deploying(), badEntry(), good()), true},
		"of health":                            {reporting(because(v1alpha1.CauseHealthCheckFailed), good()), true},
		"of Flux":                              {reporting(because(v1alpha1.CauseTargetUnhealthy), good()), true},
		"not of a deadline alone":              {reporting(because(v1alpha1.CauseDeployTimeout), good()), false},
		"not of a deadline, after it is back":  {reporting(back().Succeeded(), because(v1alpha1.CauseDeployTimeout), good()), false},
		"not if nobody knows why":              {reporting(because(""), good()), false},
		"not twice":                            {reporting(badEntry(), good()).lists(), false},
		"again after a retry":                  {reporting(badEntry().Retried(noon), good()).lists(), true},
		"not after an hour":                    {reporting(badEntry(), good()).at(noon.Add(time.Hour + instant)), false},
		"not if something else came after it":  {reporting(entry("1.1.0").ID(9).Succeeded(), badEntry(), good()), false},
		"not if its content is not known":      {reporting(unhealthyRelease().BakeEnd(noon), good()), false},
		"not to one that a user has created":   {reporting(badEntry(), good()).quarantined(quarantineOfBad(func(q *quarantined.Quarantine) { q.Managed = false })), false},
		"not to one that a user has lifted":    {reporting(badEntry(), good()).quarantined(quarantineOfBad(func(q *quarantined.Quarantine) { q.Spec.Lifted = true })), false},
		"nothing while it is tried again":      {reporting(badEntry().Retried(noon).Deploying(), good()), false},
		"nothing from before it was promoted":  {reporting(good()), false},
		"nothing without a history":            {reporting(), false},
		"nothing if a rollback is called that": {reporting(back().BakeEnd(noon).Failed(), good()), false},
	} {
		t.Run(name, func(t *testing.T) {
			report := promotion.DueReport(test.given.in())
			diff(t, test.want, report != nil)
			if report != nil {
				diff(t, []any{badName, badDigest, int64(7)}, []any{report.Name, report.Digest, report.Failure.EntryID})
			}
		})
	}
}

func TestNothingIsReportedUnlessThatIsWanted(t *testing.T) {
	s := reporting(badEntry(), entry("1.1.0").ID(5).Succeeded())
	s.input.Rollout.Spec.Quarantine = nil
	diff(t, (*quarantined.Report)(nil), promotion.DueReport(s.in()))
	s.input.Rollout.Spec.Quarantine = &v1alpha1.RolloutQuarantine{Report: v1alpha1.ReportNothing}
	diff(t, (*quarantined.Report)(nil), promotion.DueReport(s.in()))
}

func TestHistoryNamesTheQuarantineThatListsAFailure(t *testing.T) {
	for name, test := range map[string]struct {
		given *situation
		want  string
	}{
		"once it lists it":   {reporting(badEntry(), entry("1.1.0").ID(5).Succeeded()).lists(), badName},
		"not an earlier one": {reporting(badEntry().ID(8), entry("1.1.0").ID(5).Succeeded()).lists(), ""},
		"not before":         {reporting(badEntry(), entry("1.1.0").ID(5).Succeeded()), ""},
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
	report := promotion.DueReport(s.in())
	quarantined.Acknowledge(s.input.Rollout.Status.History, *report)
	diff(t, []string{"", badName, ""}, quarantinesOf(s.input.Rollout))
	diff(t, (*quarantined.Report)(nil), promotion.DueReport(s.in()))

	s.input.Rollout.Status.History[1].Quarantine = ""
	report.Failure.LastRetryTimestamp = wireTime(noon)
	quarantined.Acknowledge(s.input.Rollout.Status.History, *report)
	diff(t, []string{"", "", ""}, quarantinesOf(s.input.Rollout))
}

// Fifty Rollouts fail at the same second, and the cache shows nothing of it for a while.
// Those that the quarantine has no room for come to rest, too.
func TestFiftyFailuresAtOnceComeToRest(t *testing.T) {
	q := quarantineOfBad()
	for i := range 50 {
		s := reporting(badEntry(), entry("1.1.0").ID(5).Succeeded())
		s.input.Rollout.UID = types.UID(fmt.Sprint(i))
		report := promotion.DueReport(s.in())
		q.Status, _ = quarantine.Report(q.Status, report.Failure, s.input.Rollout.Spec.Quarantine)
		quarantined.Acknowledge(s.input.Rollout.Status.History, *report)
		diff(t, (*quarantined.Report)(nil), promotion.DueReport(s.in()))
	}
	diff(t, 10, len(q.Status.Failures))
	diff(t, noon.Add(24*time.Hour), q.Status.Until.Time)
}

func quarantinesOf(rollout *v1alpha1.Rollout) []string {
	var all []string
	for _, entry := range rollout.Status.History {
		all = append(all, entry.Quarantine)
	}
	return all
}
