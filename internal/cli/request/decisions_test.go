// SPDX-License-Identifier: Apache-2.0

package request_test

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/approvals"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestChoiceIsOfTheUserWhoMakesItIfNamesAreChecked(t *testing.T) {
	in := promotion.Input{Now: fixture.Noon, Rollout: fixture.MakeRollout("shop").Obj()}
	for choosers, want := range map[bool]string{true: "alice", false: ""} {
		in.Approvals.Identity = approvals.Identity{Choosers: choosers}
		after := request.Pin("1.1.0@sha256:00").By("alice", "").Apply(in)
		if got := after.Approvals.Requesters["1.1.0"]; got != want {
			t.Errorf("names are checked: %v; %q asks for it, want %q", choosers, got, want)
		}
	}
}

func TestDecisionIsOneOfThoseThatWereMade(t *testing.T) {
	digest := fixture.DigestOf("1.1.0")
	in := promotion.Input{Now: fixture.Noon, Rollout: fixture.MakeRollout("shop").Obj()}
	in.Approvals.Given = []v1alpha1.RolloutApproval{{}}
	after := request.ApproveAs("alice", "security", v1alpha1.VersionInfo{Tag: "1.1.0", Digest: &digest}, true).Apply(in)
	if len(in.Approvals.Given) != 1 || len(after.Approvals.Given) != 2 {
		t.Fatalf("%d decisions before, %d after", len(in.Approvals.Given), len(after.Approvals.Given))
	}
	made := after.Approvals.Given[1]
	if made.Spec.Role != "security" || made.Spec.Digest != digest || made.Spec.By.Username != "alice" || !made.CreationTimestamp.Time.Equal(fixture.Noon) {
		t.Errorf("%+v", made)
	}
}
