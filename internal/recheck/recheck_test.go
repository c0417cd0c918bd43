// SPDX-License-Identifier: Apache-2.0

package recheck_test

import (
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestNoPassThatIsDueAlreadyFollowsAtOnce(t *testing.T) {
	begun := fixture.Noon
	now := begun.Add(time.Minute)
	for name, tt := range map[string]struct {
		due  time.Time
		want time.Duration
	}{
		"later":                             {begun.Add(time.Hour), 59 * time.Minute},
		"while the pass was under way":      {begun.Add(time.Second), time.Millisecond},
		"when the pass began, and is still": {begun, time.Second},
		"before, and is still":              {begun.Add(-time.Hour), time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := recheck.In(tt.due, begun, now); got != tt.want {
				t.Errorf("sleeps for %s, want %s", got, tt.want)
			}
		})
	}
}
