// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"os"
	"regexp"
	"testing"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// The order of the checks is what users see first. A new check needs a place in it, and its
// reasons one in the table of reasons: what a bypass lifts is of gates, and all that is of
// gates is lifted by a bypass.
func TestChecksAreAllInOrder(t *testing.T) {
	want := []struct {
		check   string
		reasons []string
	}{
		{"historyUpToDate", []string{v1alpha1.HistoryOutdatedReason}},
		{"leftToTheController", []string{v1alpha1.PinnedReason, v1alpha1.ForcedReason, v1alpha1.InvalidWantedVersionReason}},
		{"policyReadable", nil},
		{"offeredByPolicy", []string{v1alpha1.NotOfferedReason}},
		{"appliedComesFirst", []string{v1alpha1.FirstReleaseNotAppliedReason, v1alpha1.FirstReleaseUnknownReason}},
		{"everyTagKnown", []string{v1alpha1.TagsUnknownReason}},
		{"digestKnown", []string{v1alpha1.DigestUnknownReason}},
		{"notFailedBefore", []string{v1alpha1.FailedBeforeReason}},
		{"notQuarantined", []string{v1alpha1.QuarantinedReason, v1alpha1.QuarantineListFailedReason}},
		{"notRecalled", []string{v1alpha1.QuarantinedReason}},
		{"provenUpstream", []string{environmentsv1.UpstreamUnknownReason, environmentsv1.UpstreamPendingReason, environmentsv1.UpstreamSoakingReason}},
		{"noBakeRunning", []string{v1alpha1.BakeRunningReason}},
		{"lastBakeNotFailed", []string{v1alpha1.PreviousBakeFailedReason}},
		{"withinRollbackLimit", []string{v1alpha1.RollbackLimitReason}},
		{"everyCheckMeasurable", []string{v1alpha1.HealthCheckInvalidReason}},
		{"nothingUnhealthy", []string{v1alpha1.UnhealthyHealthChecksReason}},
		{"everyGatePasses", []string{v1alpha1.SomeGatesBlockingReason, v1alpha1.GateListFailedReason}},
		{"everyGateAllows", []string{v1alpha1.NoAllowedVersionsReason}},
		{"everyScheduleValid", []string{v1alpha1.InvalidScheduleReason}},
		{"everyScheduleOpen", []string{v1alpha1.ScheduleClosedReason}},
		{"everyApprovalGiven", []string{v1alpha1.ApprovalRequiredReason, v1alpha1.ApprovalRejectedReason, v1alpha1.IdentityNotVerifiedReason, v1alpha1.ApprovalListFailedReason, v1alpha1.DigestUnknownReason}},
		{"intervalOver", []string{v1alpha1.ReleaseIntervalReason}},
		{"promotedByAPerson", []string{environmentsv1.AwaitingPromotionReason}},
	}
	rules := promotionChecks(Input{Rollout: &v1alpha1.Rollout{}})
	names := namesOfChecks(t)
	if len(want) != len(rules) || len(names) != len(rules) {
		t.Fatalf("%d checks are listed here, and there are %d, %d of them with a name", len(want), len(rules), len(names))
	}
	for i, rule := range rules {
		name := names[i]
		if name != want[i].check {
			t.Errorf("check %d is %s, not %s", i, name, want[i].check)
		}
		for _, reason := range want[i].reasons {
			approval := name == "everyApprovalGiven"
			if verdict.IsOfApprovals(reason) != approval && reason != v1alpha1.DigestUnknownReason {
				t.Errorf("%s is of approvals: %v, and it is a reason of %s", reason, !approval, name)
			}
			ofGates := verdict.IsOfGates(reason) && !approval && !verdict.IsOfUpstreams(reason) && reason != environmentsv1.AwaitingPromotionReason
			if lifted := rule.unless&bypassed != 0; lifted != ofGates {
				t.Errorf("a bypass lifts %s: %v, and %s is of gates: %v", name, lifted, reason, ofGates)
			}
		}
	}
}

// namesOfChecks returns the names in the rows of the table, as they are written there.
func namesOfChecks(t *testing.T) []string {
	t.Helper()
	source, err := os.ReadFile("checks.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, row := range regexp.MustCompile(`\{require: (?:forAll\()?(\w+)`).FindAllStringSubmatch(string(source), -1) {
		names = append(names, row[1])
	}
	return names
}
