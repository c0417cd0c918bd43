// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestAsRecorded(t *testing.T) {
	ends := time.Date(2026, time.November, 23, 7, 0, 0, 0, time.UTC)
	rollout := fixture.MakeRollout("shop").History(fixture.MakeEntry("1.0.0").Succeeded()).Obj()
	rollout.Status.AvailableReleases = []v1alpha1.VersionInfo{{Tag: "1.0.0"}, {Tag: "1.1.0"}}
	rollout.Status.ReleaseCandidates = []v1alpha1.ReleaseCandidate{{
		VersionInfo: v1alpha1.VersionInfo{Tag: "1.1.0"},
		Holds:       []v1alpha1.CandidateHold{{Reason: "ScheduleClosed", Message: "closed", Until: &metav1.Time{Time: ends}}},
	}}
	recorded := []promotion.Verdict{{
		Release: v1alpha1.VersionInfo{Tag: "1.1.0"}, Holds: []verdict.Hold{{Reason: "ScheduleClosed", Message: "closed", Until: ends}},
	}}
	nothing := promotion.Outcome{Action: promotion.Nothing}
	baking := promotion.Outcome{Action: promotion.Wait, Message: "it bakes"}
	for name, tt := range map[string]struct {
		visible   promotion.Outcome
		onlyHolds bool
		want      promotion.Outcome
	}{
		"a promotion is not certain":                       {promotion.Outcome{Action: promotion.Promote}, true, nothing},
		"what holds a release does not end its bake":       {baking, true, baking},
		"without what else it depends on nothing is known": {baking, false, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			visible := promotion.Decision{Outcome: tt.visible, RecheckAt: ends}
			visible.Candidates = []promotion.Verdict{{Release: v1alpha1.VersionInfo{Tag: "1.1.0"}}}
			got := explain.AsRecorded(rollout, visible, tt.onlyHolds)
			if diff := cmp.Diff(tt.want, got.Outcome); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(recorded, got.Candidates); diff != "" || !got.RecheckAt.IsZero() {
				t.Errorf("candidates (-want +got), and again at %v:\n%s", got.RecheckAt, diff)
			}
		})
	}
}

// Of older candidates, the status does not have what holds them.
func TestAsRecordedLeavesOutCandidatesWithoutAVerdict(t *testing.T) {
	rollout := fixture.MakeRollout("shop").Obj()
	rollout.Status.ReleaseCandidates = make([]v1alpha1.ReleaseCandidate, releases.MostExplained+2)
	rollout.Status.ReleaseCandidates[releases.MostExplained+1].Holds = []v1alpha1.CandidateHold{{Reason: "NotNext"}}
	if got := len(explain.AsRecorded(rollout, promotion.Decision{}, true).Candidates); got != releases.MostExplained+1 {
		t.Errorf("%d candidates", got)
	}
}
