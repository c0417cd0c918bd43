// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// usualPace is assumed where nothing was promoted before: Flux applies most releases
// within a minute.
const usualPace = time.Minute

// Pace returns how long it took until a release was applied and healthy: the median of
// the promotions in a history, and in words where it comes from.
func Pace(history []v1alpha1.DeploymentHistoryEntry) (time.Duration, string) {
	var took []time.Duration
	for i := range history {
		if began := history[i].BakeStartTime; began != nil && history[i].LastRetryTimestamp == nil {
			took = append(took, began.Sub(history[i].Timestamp.Time))
		}
	}
	if len(took) == 0 {
		return usualPace, "a guess: the history shows no earlier promotion"
	}
	slices.Sort(took)
	return max(took[len(took)/2], 0), "the median of " + verdict.Count(len(took), "promotion") + " here"
}
