// SPDX-License-Identifier: Apache-2.0

package approvals

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

const (
	// KeptFor is how long a decision is kept after its end, unless the installation says
	// otherwise.
	KeptFor = 90 * 24 * time.Hour
	// longestValidity is the most that a gate can give an approval.
	longestValidity = 2160 * time.Hour
	// mostExpended is how many decisions are deleted after one promotion.
	mostExpended = 10
)

// Expendable returns the decisions that ended long ago, the first that ended first, up to a
// limit. Rejections are not among them, because they have no end.
func Expendable(given []v1alpha1.RolloutApproval, history []v1alpha1.DeploymentHistoryEntry, kept time.Duration, now time.Time) []v1alpha1.RolloutApproval {
	ends := map[types.UID]time.Time{}
	var over []v1alpha1.RolloutApproval
	for _, a := range given {
		if end := endOf(&a, history); !end.IsZero() && now.Sub(end) >= kept {
			ends[a.UID] = end
			over = append(over, a)
		}
	}
	slices.SortFunc(over, func(a, b v1alpha1.RolloutApproval) int {
		return cmp.Or(ends[a.UID].Compare(ends[b.UID]), cmp.Compare(a.Name, b.Name))
	})
	return over[:min(len(over), mostExpended)]
}

// endOf returns when a decision was used, or can be used no more, whatever gates will ask; zero
// if that does not end.
func endOf(a *v1alpha1.RolloutApproval, history []v1alpha1.DeploymentHistoryEntry) time.Time {
	var end time.Time
	switch {
	case a.Spec.Decision == v1alpha1.DecisionReject:
		return end
	case a.Spec.Decision == v1alpha1.DecisionOverride && a.Spec.For != nil:
		end = a.CreationTimestamp.Add(a.Spec.For.Duration)
	default:
		end = a.CreationTimestamp.Add(longestValidity)
	}
	for i := range history {
		if at := history[i].Timestamp.Time; uses(&history[i], a.UID) && at.Before(end) {
			end = at
		}
	}
	return end
}

// uses reports whether a promotion has used up a decision.
func uses(entry *v1alpha1.DeploymentHistoryEntry, uid types.UID) bool {
	return entry.Approval != nil &&
		slices.ContainsFunc(entry.Approval.By, func(by v1alpha1.RecordedApproval) bool { return by.UID == uid })
}
