// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// Only health counts for a bake, so the time in which it stood still is no progress.
func TestBakeThatStoodStillIsNotAsFar(t *testing.T) {
	began := fixture.Noon
	r := fixture.MakeRollout("shop").BakeTime(10 * time.Minute).History(fixture.MakeEntry("1.0.0").Baking(began)).Obj()
	entry := r.Current()
	for name, test := range map[string]struct {
		since *metav1.Time
		stood time.Duration
		want  float64
	}{
		"it never did":    {nil, 0, 0.6},
		"it did":          {nil, 3 * time.Minute, 0.3},
		"it does, so far": {&metav1.Time{Time: began.Add(2 * time.Minute)}, time.Minute, 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			entry.UnprovenSince, entry.UnprovenFor = test.since, &metav1.Duration{Duration: test.stood}
			if got, runs := baked(r, entry, began.Add(6*time.Minute)); !runs || math.Abs(got-test.want) > 0.001 {
				t.Errorf("%.2f %t, want %.2f", got, runs, test.want)
			}
		})
	}
}
