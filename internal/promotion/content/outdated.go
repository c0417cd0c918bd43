// SPDX-License-Identifier: Apache-2.0

package content

import (
	"math"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// IsOutdated reports whether a history does not have the promotion that has written a
// target last, because it is older. An empty history is not old, but new or lost.
func IsOutdated(history []v1alpha1.DeploymentHistoryEntry, promotion int64) bool {
	return len(history) > 0 && promotion > HighestID(history)
}

// HighestID returns the highest id in a history. It ignores an id that cannot be
// incremented, because only a mistake can have written it.
func HighestID(history []v1alpha1.DeploymentHistoryEntry) int64 {
	var highest int64
	for i := range history {
		if id := history[i].IDOrZero(); id < math.MaxInt64 {
			highest = max(highest, id)
		}
	}
	return highest
}

// Newest returns the target that the newest promotion has written; nil if it is not known
// which promotion has written any of them.
func (t Targets) Newest() *Target {
	var newest *Target
	for i := range t.All {
		if id := t.All[i].Promotion; id > 0 && (newest == nil || id > newest.Promotion) {
			newest = &t.All[i]
		}
	}
	return newest
}

// NewestPromotion returns the id of the newest promotion that has written a target; zero if it is
// not known.
func (t Targets) NewestPromotion() int64 {
	if newest := t.Newest(); newest != nil {
		return newest.Promotion
	}
	return 0
}

// Outdate reports whether a newer promotion than those of a history has written one of the
// targets. Then nothing may be written to any of them.
func (t Targets) Outdate(history []v1alpha1.DeploymentHistoryEntry) bool {
	return IsOutdated(history, t.NewestPromotion())
}
