// SPDX-License-Identifier: Apache-2.0

package rolloutstatus

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Size limits of lists in a status, in bytes of JSON. Package promotion limits the known
// releases and the history, and long texts are cut. Together these limits keep a status
// below 200 KiB.
const (
	candidatesLimit = 32 << 10
	gatedLimit      = 14 << 10
	gatesLimit      = 12 << 10
	targetsLimit    = 14 << 10
)

// longestHold is the maximum length of the message of a hold in the status.
const longestHold = 512

// fitToLimits removes items from the lists that exceed their size limit, and counts
// them. The conditions still cover all items.
func fitToLimits(b basis) {
	s, all := b.status, v1alpha1.UnlistedCounts{}
	s.ReleaseCandidates, all.ReleaseCandidates = fitCandidates(b, s.ReleaseCandidates)
	s.GatedReleaseCandidates, all.GatedReleaseCandidates = truncate.Items(s.GatedReleaseCandidates, gatedLimit, b.goesNext())
	s.Gates, all.Gates = truncate.Items(s.Gates, gatesLimit, b.blocks())
	s.Unlisted = nil
	if all != (v1alpha1.UnlistedCounts{}) {
		s.Unlisted = &all
	}
	keepTargets(s, int32(len(s.Targets)), countApplied(s.Targets))
}

// keepTargets applies the size limit to the targets. The counts are the total numbers, also
// of those that are not listed already.
func keepTargets(s *v1alpha1.RolloutStatus, all, allApplied int32) {
	s.Targets, _ = truncate.Items(s.Targets, targetsLimit, failing)
	unlisted := all - int32(len(s.Targets))
	if unlisted == 0 && s.Unlisted == nil {
		return
	}
	if s.Unlisted == nil {
		s.Unlisted = &v1alpha1.UnlistedCounts{}
	}
	s.Unlisted.Targets, s.Unlisted.AppliedTargets = unlisted, min(unlisted, allApplied-countApplied(s.Targets))
}

// countApplied returns how many of the targets have applied the version.
func countApplied(targets []v1alpha1.TargetStatus) int32 {
	n := int32(0)
	for _, t := range targets {
		if t.State == v1alpha1.TargetApplied {
			n++
		}
	}
	return n
}

// fitCandidates returns the newest candidates and the one that goes next, with
// their holds as far as the size limit allows.
func fitCandidates(b basis, candidates []v1alpha1.ReleaseCandidate) ([]v1alpha1.ReleaseCandidate, int32) {
	next, left := b.goesNext(), candidatesLimit/2
	for i := range candidates {
		goes := next(candidates[i].VersionInfo)
		if i >= releases.MostExplained && !goes {
			continue
		}
		explained := candidates[i]
		explained.Holds = holdsOf(b.verdicts[i])
		if size := truncate.ItemSize(explained); goes || size <= left {
			candidates[i], left = explained, left-size
		}
	}
	return truncate.Items(candidates, candidatesLimit, func(c v1alpha1.ReleaseCandidate) bool { return next(c.VersionInfo) })
}

func holdsOf(v promotion.Verdict) []v1alpha1.CandidateHold {
	var holds []v1alpha1.CandidateHold
	for _, hold := range v.Holds {
		shown := v1alpha1.CandidateHold{Reason: hold.Reason, Message: truncate.Text(hold.Message, longestHold)}
		if !hold.Until.IsZero() {
			shown.Until = &metav1.Time{Time: hold.Until}
		}
		holds = append(holds, shown)
	}
	return holds
}

// goesNext returns a function that recognises the candidate that would be promoted first.
// The others must not overtake it.
func (b basis) goesNext() func(v1alpha1.VersionInfo) bool {
	considered := promotion.Considered(b.verdicts)
	next := slices.IndexFunc(considered, promotion.Verdict.Eligible)
	if next < 0 {
		next = slices.IndexFunc(considered, letThrough)
	}
	return func(v v1alpha1.VersionInfo) bool {
		return len(considered) > 0 && v.Tag == considered[max(0, next)].Release.Tag
	}
}

// blocks returns a function that recognises the gates that block the next promotion.
func (b basis) blocks() func(v1alpha1.RolloutGateStatusSummary) bool {
	considered := promotion.Considered(b.verdicts)
	return func(gate v1alpha1.RolloutGateStatusSummary) bool {
		switch {
		case gate.Passing != nil && !*gate.Passing:
			return true
		case gate.AllowedVersions == nil || len(considered) == 0:
			return false
		}
		return !slices.Contains(gate.AllowedVersions, considered[0].Release.Tag)
	}
}

func failing(t v1alpha1.TargetStatus) bool {
	return t.State == v1alpha1.TargetConflict || t.State == v1alpha1.TargetFailed
}
