// SPDX-License-Identifier: Apache-2.0

package content_test

import (
	"math"
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
)

func TestHistoryIsOutdated(t *testing.T) {
	history := func(ids ...int64) []v1alpha1.DeploymentHistoryEntry {
		var all []v1alpha1.DeploymentHistoryEntry
		for _, id := range ids {
			all = append(all, entry("1.0.0").ID(id).Obj())
		}
		return all
	}
	for name, test := range map[string]struct {
		history []v1alpha1.DeploymentHistoryEntry
		targets []int64
		want    bool
	}{
		"no target was written yet":                                  {history(2, 1), []int64{0, 0}, false},
		"the newest promotion has written all":                       {history(2, 1), []int64{2, 2}, false},
		"the controller died between two writes":                     {history(2, 1), []int64{2, 1}, false},
		"the controller died before the first write":                 {history(2, 1), []int64{1, 1}, false},
		"a target was restored from a backup":                        {history(9, 8), []int64{9, 3}, false},
		"a target was annotated later":                               {history(9, 8), []int64{9, 0}, false},
		"a newer promotion has written all":                          {history(1), []int64{2, 2}, true},
		"a newer promotion had written one when the status was lost": {history(1), []int64{1, 2, 0}, true},
		"an empty history is new or lost":                            {nil, []int64{7}, false},
		"a history without ids is from another client":               {[]v1alpha1.DeploymentHistoryEntry{entry("1.0.0").WithoutID().Obj()}, []int64{1}, true},
		"an id of a mistake does not count":                          {history(math.MaxInt64, 1), []int64{2}, true},
		"the newest id counts, wherever it is":                       {history(1, 5), []int64{3}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var targets content.Targets
			for _, id := range test.targets {
				targets.All = append(targets.All, content.Target{Promotion: id})
			}
			diff(t, test.want, targets.Outdate(test.history))
		})
	}
}
