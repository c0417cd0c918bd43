// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

type quarantineOf = func(*quarantined.Quarantine)

// failedElsewhere returns a quarantine of a digest, because it failed on another Rollout.
func failedElsewhere(digest string, changes ...quarantineOf) quarantined.Quarantine {
	q := quarantined.Quarantine{Name: "ReleaseQuarantine bad", Spec: v1alpha1.ReleaseQuarantineSpec{Digest: digest}, Managed: true}
	q.Status.Failures = []v1alpha1.ReleaseFailure{{Rollout: v1alpha1.ReportingRollout{Name: "other", UID: "other"}, EntryID: 7}}
	q.Status.Until = wireTime(one)
	for _, change := range changes {
		change(&q)
	}
	return q
}

func lifted(q *quarantined.Quarantine) { q.Spec.Lifted = true }

func recall(q *quarantined.Quarantine) { q.Spec.Enforce = v1alpha1.EnforceAlways }

func recordedName(q *quarantined.Quarantine) { q.Name = "ReleaseQuarantine recorded" }

func byUser(q *quarantined.Quarantine) {
	q.Status, q.Managed = v1alpha1.ReleaseQuarantineStatus{}, false
}

// quarantined sets the quarantines in scope.
func (s *situation) quarantined(all ...quarantined.Quarantine) *situation {
	s.input.Quarantines.All = all
	return s
}

// withCandidate returns a Rollout that runs 1.1.0, and may take 1.2.0.
func withCandidate() *fixture.RolloutBuilder {
	return rollout().Releases(release("1.1.0").Obj(), release("1.2.0").Digest("sha256:bad").Obj()).History(entry("1.1.0").ID(5).Succeeded())
}

func TestQuarantineHoldsTheRelease(t *testing.T) {
	obey := false
	disobeying := withCandidate().Obj()
	disobeying.Spec.Quarantine = &v1alpha1.RolloutQuarantine{Obey: &obey}
	unreadable, unasked := given(withCandidate()), given(withCandidate()).quarantined(failedElsewhere("sha256:bad"))
	unreadable.input.Quarantines.Problem = &verdict.Problem{Reason: v1alpha1.QuarantineListFailedReason, Message: "list: no"}
	unasked.input.Rollout = disobeying
	for name, test := range map[string]struct {
		given *situation
		want  []verdict.Hold
	}{
		"until its time is over": {
			given(withCandidate()).quarantined(failedElsewhere("sha256:bad")),
			[]verdict.Hold{{
				Reason: v1alpha1.QuarantinedReason, Until: one,
				Message: "1.2.0 is in quarantine by ReleaseQuarantine bad until 2026-03-02T13:00:00Z; pin it to try it all the same, or set spec.lifted of the quarantine",
			}},
		},
		"while quarantines cannot be read":    {unreadable, []verdict.Hold{{Reason: v1alpha1.QuarantineListFailedReason, Message: "list: no"}}},
		"not on a Rollout that does not obey": {unasked, nil},
		"not if failures are unblocked": {
			given(withCandidate().Annotate(v1alpha1.UnblockFailedAnnotation, "true")).quarantined(failedElsewhere("sha256:bad")), nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.given.input.Policy.Image = image
			d := promotion.Decide(test.given.in())
			diff(t, "1.2.0", d.Candidates[0].Release.Tag)
			diff(t, test.want, d.Candidates[0].Holds)
			if test.want != nil {
				diff(t, test.want[0].Until, d.RecheckAt)
			}
		})
	}
}

func TestFirstReleaseIsTheNewestThatIsNotInQuarantine(t *testing.T) {
	s := given(rollout().Releases(release("1.1.0").Obj(), release("1.2.0").Digest("sha256:bad").Obj())).
		quarantined(failedElsewhere("sha256:bad"))
	diff(t, "1.1.0", promotion.Decide(s.in()).Release.Tag)
}

func TestUsersGoPastAQuarantineUnlessItIsARecall(t *testing.T) {
	pinned := func() *situation { return given(withCandidate().Pin("1.2.0")) }
	diff(t, "1.2.0", promotion.Decide(pinned().quarantined(failedElsewhere("sha256:bad")).in()).Release.Tag)

	d := promotion.Decide(pinned().quarantined(failedElsewhere("sha256:bad", byUser, recall)).in())
	diff(t, promotion.Nothing, d.Action)
	diff(t, &verdict.Problem{
		Reason:  v1alpha1.QuarantinedReason,
		Message: "1.2.0 is in quarantine by ReleaseQuarantine bad; to end that, set its spec.lifted",
	}, d.Problem)

	ends := pinned().quarantined(failedElsewhere("sha256:bad", recall, func(q *quarantined.Quarantine) { q.Spec.Until = wireTime(one) }))
	diff(t, one, promotion.Decide(ends.in()).RecheckAt)
	diff(t, "1.2.0", promotion.Decide(ends.at(one).in()).Release.Tag)

	older := given(rollout().Releases(release("1.0.0").Digest("sha256:bad").Obj(), release("1.1.0").Obj()).Pin("1.0.0").History(entry("1.1.0").Succeeded())).
		quarantined(failedElsewhere("sha256:bad", recall))
	diff(t, one, promotion.Decide(older.in()).RecheckAt)
	diff(t, "1.0.0", promotion.Decide(older.at(one).in()).Release.Tag)

	runs := given(rollout().Releases(release("1.2.0").Digest("sha256:bad").Obj()).Pin("1.2.0").History(entry("1.2.0").Succeeded())).
		quarantined(failedElsewhere("sha256:bad", byUser, recall))
	diff(t, (*verdict.Problem)(nil), promotion.Decide(runs.in()).Problem)
}

// A force of what was recalled must not wait for the end of the recall.
func TestForceOfWhatWasRecalledEnds(t *testing.T) {
	forced := given(withCandidate().Annotate(v1alpha1.ForceDeployAnnotation, "1.2.0")).said("try it").quarantined(failedElsewhere("sha256:bad", byUser, recall))
	d := promotion.Decide(forced.in())
	diff(t, promotion.Nothing, d.Action)
	diff(t, (*verdict.Problem)(nil), d.Problem)
	diff(t, []verdict.Note{{
		Reason:  v1alpha1.QuarantinedReason,
		Message: "rollout.kuberik.com/force-deploy has no effect: 1.2.0 is in quarantine by ReleaseQuarantine bad; to end that, set its spec.lifted",
	}}, d.Answers)
	diff(t, []string{v1alpha1.ForceDeployAnnotation, v1alpha1.DeployMessageAnnotation}, d.Consumed)
}

func TestRollbackDoesNotGoBackToWhatIsKnownToBeBad(t *testing.T) {
	history := func() *fixture.RolloutBuilder {
		return rollout().Ledger("1.0.0", "1.1.0", "1.2.0").RollsBack().History(unhealthyRelease(),
			entry("1.1.0").Version(release("1.1.0").Digest("sha256:bad").Obj()).Succeeded(), entry("1.0.0").Succeeded())
	}
	for want, q := range map[string]quarantined.Quarantine{
		"1.0.0": failedElsewhere("sha256:bad", byUser),
		"1.1.0": failedElsewhere("sha256:bad"), // it has succeeded here
	} {
		diff(t, want, promotion.Decide(given(history()).quarantined(q).in()).Release.Tag)
	}
	recalled := failedElsewhere("sha256:bad", recall)
	diff(t, "1.0.0", promotion.Decide(given(history()).quarantined(recalled).in()).Release.Tag)
}

func TestRollbackWaitsForTheEndOfAQuarantine(t *testing.T) {
	only := func() *situation {
		return given(rollout().Ledger("1.1.0", "1.2.0").RollsBack().History(unhealthyRelease(),
			entry("1.1.0").Version(release("1.1.0").Digest("sha256:bad").Obj()).Succeeded())).
			quarantined(failedElsewhere("sha256:bad", byUser, func(q *quarantined.Quarantine) { q.Spec.Until = wireTime(one) }))
	}
	d := promotion.Decide(only().in())
	diff(t, v1alpha1.NoProvenReleaseReason, d.Rollback.Reason)
	diff(t, one, d.RecheckAt)
	diff(t, "1.1.0", promotion.Decide(only().at(one).in()).Release.Tag)
}

func TestUnblockWaitsForAReleaseInQuarantine(t *testing.T) {
	s := given(withCandidate().Annotate(v1alpha1.UnblockFailedAnnotation, "true")).
		gates(gate("night").Closed()).quarantined(failedElsewhere("sha256:bad"))
	d := promotion.Decide(s.in())
	diff(t, []string(nil), d.Consumed)
	diff(t, []verdict.Note(nil), d.Answers)

	d = promotion.Decide(s.gates().in())
	diff(t, "1.2.0", d.Release.Tag)
	diff(t, []string{v1alpha1.UnblockFailedAnnotation}, d.Consumed)
	diff(t, true, strings.HasSuffix(d.Message, "; a failure bypassed manually"))
}

func TestLiftedQuarantineForgivesTheFailure(t *testing.T) {
	r := rollout().Releases(release("1.1.0").Obj(), release("1.2.0").Digest("sha256:bad").Obj()).RollsBack().
		History(entry("1.1.0").ID(8).Back("1.2.0", 7, 5).Succeeded(), unhealthyRelease(), entry("1.1.0").ID(5).Succeeded())
	retried := wireTime(eleven)
	of := func(uid types.UID, id int64) quarantined.Quarantine {
		return failedElsewhere("sha256:bad", func(q *quarantined.Quarantine) {
			q.Spec.Lifted = true
			q.Status.Failures[0].Rollout.UID, q.Status.Failures[0].EntryID = uid, id
		})
	}
	uid := r.Obj().UID
	for name, test := range map[string]struct {
		quarantine quarantined.Quarantine
		want       []string
	}{
		"of this Rollout":    {of(uid, 7), []string{}},
		"of another entry":   {of(uid, 6), []string{v1alpha1.FailedBeforeReason}},
		"of another Rollout": {of("other", 7), []string{v1alpha1.FailedBeforeReason}},
		"of an earlier try": {
			func() quarantined.Quarantine {
				q := of(uid, 7)
				q.Status.Failures[0].LastRetryTimestamp = retried
				return q
			}(), []string{v1alpha1.FailedBeforeReason},
		},
		"that lists newer failures only": {failedElsewhere("sha256:bad", recordedName, lifted), []string{}},
		"that has not been lifted":       {failedElsewhere("sha256:bad", recordedName, byUser), []string{v1alpha1.FailedBeforeReason, v1alpha1.QuarantinedReason}},
	} {
		t.Run(name, func(t *testing.T) {
			failed := given(r).quarantined(test.quarantine)
			failed.input.Rollout.Status.History[1].Quarantine = "recorded"
			diff(t, map[string][]string{"1.2.0": test.want}, reasons(promotion.Decide(failed.in())))
		})
	}
}
