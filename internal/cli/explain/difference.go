// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// Difference is a candidate of which the status of the Rollout says something else. The
// controller has then seen other objects, knows what no object shows, or does not run.
type Difference struct {
	Version string `json:"version"`
	// Status are the reasons of the holds in the status. Known is false if the status does
	// not have the candidate.
	Status []string `json:"status"`
	Known  bool     `json:"known"`
	// Decision are the reasons of the holds now.
	Decision []string `json:"decision"`
}

// differences compares the reasons of the holds, and not their messages: some contain
// times. It is silent where the status cannot be compared: it is about an older spec, or
// it left out holds because it must stay small.
func differences(rollout *v1alpha1.Rollout, verdicts []promotion.Verdict) []Difference {
	if rollout.Status.ObservedGeneration != rollout.Generation || rollout.Status.Unlisted != nil {
		return nil
	}
	var all []Difference
	for _, verdict := range verdicts {
		candidate := candidateOf(rollout, verdict.Release.Tag)
		difference := Difference{Version: verdict.Release.Tag, Known: candidate != nil, Decision: reasons(verdict.Holds)}
		if candidate != nil {
			difference.Status = reasonsInStatus(candidate)
		}
		switch {
		case candidate != nil && len(candidate.Holds) == 0 && len(verdict.Holds) > 0 && !isNewest(rollout, verdict.Release.Tag):
			// only the newest ones have their holds in the status
		case candidate == nil || !slices.Equal(difference.Status, difference.Decision):
			all = append(all, difference)
		}
	}
	return all
}

func isNewest(rollout *v1alpha1.Rollout, tag string) bool {
	newest := rollout.Status.ReleaseCandidates
	newest = newest[:min(len(newest), releases.MostExplained)]
	return slices.ContainsFunc(newest, func(c v1alpha1.ReleaseCandidate) bool { return c.Tag == tag })
}

func candidateOf(rollout *v1alpha1.Rollout, tag string) *v1alpha1.ReleaseCandidate {
	for i := range rollout.Status.ReleaseCandidates {
		if candidate := &rollout.Status.ReleaseCandidates[i]; candidate.Tag == tag {
			return candidate
		}
	}
	return nil
}

func reasons(holds []verdict.Hold) []string {
	var all []string
	for _, hold := range holds {
		all = append(all, hold.Reason)
	}
	return all
}

func reasonsInStatus(candidate *v1alpha1.ReleaseCandidate) []string {
	var all []string
	for _, hold := range candidate.Holds {
		all = append(all, hold.Reason)
	}
	return all
}
