// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// AsRecorded returns a decision that was taken without objects that the user may not read,
// with the verdicts that the controller has stored in the status. onlyHolds is true if these
// objects can only hold releases back. Then what the decision does but promote is right all
// the same.
func AsRecorded(rollout *v1alpha1.Rollout, d promotion.Decision, onlyHolds bool) promotion.Decision {
	if !onlyHolds {
		d = promotion.Decision{Releases: promotion.Releases{Ledger: rollout.Status.AvailableReleases}}
	}
	if !onlyHolds || d.Action.Promotes() {
		d.Outcome = promotion.Outcome{Action: promotion.Nothing}
	}
	d.Candidates, d.RecheckAt = nil, time.Time{}
	for i, c := range rollout.Status.ReleaseCandidates {
		if i < releases.MostExplained || len(c.Holds) > 0 { // only these have their holds in the status
			d.Candidates = append(d.Candidates, promotion.Verdict{Release: c.VersionInfo, Holds: recordedHolds(c.Holds)})
		}
	}
	return d
}

func recordedHolds(of []v1alpha1.CandidateHold) []verdict.Hold {
	var all []verdict.Hold
	for _, h := range of {
		hold := verdict.Hold{Reason: h.Reason, Message: h.Message}
		if h.Until != nil {
			hold.Until = h.Until.Time
		}
		all = append(all, hold)
	}
	return all
}

// Disagrees reports whether the controller holds a candidate by other reasons than a
// decision does.
func Disagrees(rollout *v1alpha1.Rollout, d promotion.Decision) bool {
	return len(differences(rollout, d.Candidates)) > 0
}
