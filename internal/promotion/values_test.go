// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

func TestLogValuesSayWhatIsDoneOrWhatKeepsItFromBeingDone(t *testing.T) {
	closed := Verdict{Release: v1alpha1.VersionInfo{Tag: "1.2.0"}, Holds: []verdict.Hold{{Reason: v1alpha1.SomeGatesBlockingReason, Message: "gate night is closed"}}}
	noon := time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		decision Decision
		want     string
	}{
		"a promotion": {
			Decision{Outcome: Outcome{Action: Promote, Release: v1alpha1.VersionInfo{Tag: "1.2.0"}, Reason: v1alpha1.EligibleReason, Message: "the next"}},
			"[action Promote reason Eligible message the next release 1.2.0 candidates 0]",
		},
		"what holds the newest candidate": {
			Decision{Outcome: Outcome{Action: Nothing}, Releases: Releases{Candidates: []Verdict{closed}}, RecheckAt: noon},
			"[action Nothing reason SomeGatesBlocking message gate night is closed candidates 1 recheckAt 2026-03-02T12:00:00Z]",
		},
		"a problem counts more": {
			Decision{Outcome: Outcome{Action: Nothing}, Releases: Releases{Candidates: []Verdict{closed}}, Requests: Requests{Problem: &verdict.Problem{Reason: v1alpha1.UnknownReleaseReason, Message: "2.0.0 is not known"}}},
			"[action Nothing reason UnknownRelease message 2.0.0 is not known candidates 1]",
		},
		"nothing is new": {
			Decision{Outcome: Outcome{Action: Nothing}}, "[action Nothing reason NoReleaseCandidates candidates 0]",
		},
		"resets": {
			Decision{Outcome: Outcome{Action: Wait, Reason: v1alpha1.ProgressingReason}, Resets: []int{0, 1}},
			"[action Wait reason Progressing candidates 0 resets 2]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := fmt.Sprint(tt.decision.LogValues()); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestLogValuesAreBounded(t *testing.T) {
	d := Decision{Outcome: Outcome{Action: FailBake, Reason: v1alpha1.BakeTimeFailedReason, Message: strings.Repeat("x", 100_000)}}
	if got := len(fmt.Sprint(d.LogValues())); got > 2000 {
		t.Errorf("the values take %d bytes", got)
	}
}
