// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/internal/coordination/statefulsets"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestNoPassThatIsDueAlreadyFollowsAtOnce(t *testing.T) {
	noon := fixture.Noon
	r := &Reconciler{Now: func() time.Time { return noon.Add(time.Minute) }}
	for name, tt := range map[string]struct {
		due  time.Time
		want time.Duration
	}{
		"never":                             {time.Time{}, 0},
		"later":                             {noon.Add(time.Hour), 59 * time.Minute},
		"while the pass was under way":      {noon.Add(time.Second), time.Millisecond},
		"when the pass began, and is still": {noon, time.Second},
		"before, and is still":              {noon.Add(-time.Hour), time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			at := tt.due
			NewWithT(t).Expect(r.pause(noon, outcome{plan: statefulsets.Plan{RecheckAt: at}})).To(Equal(tt.want))
		})
	}
}
