// SPDX-License-Identifier: Apache-2.0

package rolloutstatus

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// ready is the Ready condition.
type ready struct {
	Status          metav1.ConditionStatus
	Reason, Message string
}

// wayOut is the end of the message of a failed bake.
const wayOut = "no good release is known; pin another one with spec.wantedVersion, or annotate with retry or unblock-failed"

// TestReadyInEachState also covers entries from older versions of the controller
// and from other clients.
func TestReadyInEachState(t *testing.T) {
	for name, tt := range map[string]struct {
		entry *fixture.EntryBuilder
		want  ready
	}{
		"no state":            {fixture.MakeEntry("1.0.0"), ready{metav1.ConditionTrue, v1alpha1.RolloutSucceededReason, "1.0.0"}},
		"one of old":          {fixture.MakeEntry("1.0.0").State("Pending"), ready{metav1.ConditionTrue, v1alpha1.RolloutSucceededReason, "1.0.0"}},
		"one that is unknown": {fixture.MakeEntry("1.0.0").State("Paused").Because("by X"), ready{metav1.ConditionTrue, v1alpha1.RolloutSucceededReason, "1.0.0: by X"}},
		"Succeeded":           {fixture.MakeEntry("1.0.0").Succeeded(), ready{metav1.ConditionTrue, v1alpha1.RolloutSucceededReason, "1.0.0"}},
		"Succeeded, and why":  {fixture.MakeEntry("1.0.0").Succeeded().Because("fine"), ready{metav1.ConditionTrue, v1alpha1.RolloutSucceededReason, "1.0.0: fine"}},
		"Cancelled":           {fixture.MakeEntry("1.0.0").Cancelled(), ready{metav1.ConditionTrue, v1alpha1.RolloutSucceededReason, "1.0.0"}},
		"Deploying":           {fixture.MakeEntry("1.0.0").Deploying(), ready{metav1.ConditionTrue, v1alpha1.RolloutSucceededReason, "1.0.0"}},
		"Deploying, and why":  {fixture.MakeEntry("1.0.0").Deploying().Because("wait"), ready{metav1.ConditionTrue, v1alpha1.RolloutSucceededReason, "1.0.0: wait"}},
		"retried":             {fixture.MakeEntry("1.0.0").Deploying().Retried(fixture.Noon), ready{metav1.ConditionTrue, v1alpha1.BakeTimeRetryingReason, "1.0.0"}},
		"InProgress":          {fixture.MakeEntry("1.0.0").Baking(fixture.Noon), ready{metav1.ConditionTrue, v1alpha1.RolloutSucceededReason, "1.0.0"}},
		"Failed":              {fixture.MakeEntry("1.0.0").Failed(), ready{metav1.ConditionFalse, v1alpha1.BakeTimeFailedReason, "1.0.0; " + wayOut}},
		"Failed, and why":     {fixture.MakeEntry("1.0.0").Failed().Because("ill"), ready{metav1.ConditionFalse, v1alpha1.BakeTimeFailedReason, "1.0.0: ill; " + wayOut}},
	} {
		t.Run(name, func(t *testing.T) {
			rollout := fixture.MakeRollout("shop").BakeTime(time.Hour).SelectAllChecks().Ledger("1.0.0").History(tt.entry).Obj()
			in := promotion.Input{Now: fixture.Noon, Rollout: rollout, Policy: releases.Policy{Name: "shop", Latest: &rollout.Status.AvailableReleases[0]},
				Health: evidence.Health{Checks: []v1alpha1.HealthCheck{*fixture.MakeHealthCheck("web").Obj()}}}
			status, err := After(in, promotion.Decide(in))
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred())
			is := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition)
			g.Expect(ready{is.Status, is.Reason, is.Message}).To(Equal(tt.want))
		})
	}
}

// A choice that waits for approvals changes nothing of what runs.
func TestChoiceThatWaitsForApprovalsIsShown(t *testing.T) {
	const waits = "1.1.0 waits: RolloutGate qa asks for approvals, and the digest of 1.1.0 is not known"
	for name, tt := range map[string]struct {
		entry               *fixture.EntryBuilder
		ready, reconciling  string
		stalled, isAwaiting bool
	}{
		"while a release runs": {fixture.MakeEntry("1.0.0").Succeeded(), "True RolloutSucceeded", "DigestUnknown", false, true},
		"during a promotion":   {fixture.MakeEntry("1.0.0").Deploying(), "True RolloutSucceeded", "Progressing", false, true},
		"after a failure":      {fixture.MakeEntry("1.0.0").Failed(), "False BakeTimeFailed", "", true, true},
		"before the first":     {nil, "False DigestUnknown", "Progressing", false, true},
		"once it runs":         {fixture.MakeEntry("1.1.0").Succeeded(), "True RolloutSucceeded", "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			b := fixture.MakeRollout("shop").Pin("1.1.0").BakeTime(time.Hour).SelectAllChecks().Ledger("1.0.0", "1.1.0")
			if tt.entry != nil {
				b.History(tt.entry)
			}
			rollout := b.Obj()
			in := promotion.Input{Now: fixture.Noon, Rollout: rollout, Policy: releases.Policy{Name: "shop", Latest: &rollout.Status.AvailableReleases[1]},
				Gates:  promotion.Gates{Gates: []v1alpha1.RolloutGate{*fixture.MakeGate("qa", "shop").Asking(fixture.AskFor(1)).Obj()}},
				Health: evidence.Health{Checks: []v1alpha1.HealthCheck{*fixture.MakeHealthCheck("web").Obj()}}}
			status, err := After(in, promotion.Decide(in))
			g.Expect(err).NotTo(HaveOccurred())
			is := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition)
			g.Expect(string(is.Status) + " " + is.Reason).To(Equal(tt.ready))
			g.Expect(strings.Contains(is.Message, waits)).To(Equal(tt.isAwaiting), is.Message)
			reconciling := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ReconcilingCondition)
			if reconciling == nil {
				reconciling = &metav1.Condition{}
			}
			g.Expect(reconciling.Reason).To(Equal(tt.reconciling))
			g.Expect(apimeta.IsStatusConditionTrue(status.Conditions, v1alpha1.StalledCondition)).To(Equal(tt.stalled))
		})
	}
}

// What nobody has approved is shown until somebody approves it, or something else runs.
func TestContentThatNobodyApprovedIsShown(t *testing.T) {
	for outcome, want := range map[v1alpha1.ApprovalOutcome]string{
		v1alpha1.OutcomeMissing: "True RunsUnapproved: 1.0.0 was pushed again, and nobody has approved what runs now, sha256:moved: " +
			"approve this content, or pin a release that has its approvals",
		v1alpha1.OutcomeApproved: "", v1alpha1.OutcomeOverridden: "", v1alpha1.OutcomeNotNeeded: "",
	} {
		t.Run(string(outcome), func(t *testing.T) {
			g := NewWithT(t)
			entry := fixture.MakeEntry("1.0.0").Succeeded().Approval(&v1alpha1.ApprovalRecord{Outcome: outcome})
			rollout := fixture.MakeRollout("shop").Ledger("1.0.0").History(entry.Version(fixture.MakeRelease("1.0.0").Digest("sha256:moved").Obj())).Obj()
			rollout.Status.Conditions = []metav1.Condition{{Type: v1alpha1.RunsUnapprovedCondition, Status: metav1.ConditionTrue}}
			in := promotion.Input{Now: fixture.Noon, Rollout: rollout, Policy: releases.Policy{Name: "shop", Latest: &rollout.Status.AvailableReleases[0]}}
			status, err := After(in, promotion.Decide(in))
			g.Expect(err).NotTo(HaveOccurred())
			got := ""
			if is := apimeta.FindStatusCondition(status.Conditions, v1alpha1.RunsUnapprovedCondition); is != nil {
				got = string(is.Status) + " " + is.Reason + ": " + is.Message
			}
			g.Expect(got).To(Equal(want))
		})
	}
}
