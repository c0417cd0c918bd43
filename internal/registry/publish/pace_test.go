// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// TestPauseDoublesWhileAnEnvironmentFlaps stores a report as soon as it may be stored.
func TestPauseDoublesWhileAnEnvironmentFlaps(t *testing.T) {
	g := NewWithT(t)
	p, now := pace{}, fixture.Noon
	g.Expect(p.due()).To(BeZero())
	var pauses []time.Duration
	for range 50 {
		p.add(now)
		pauses = append(pauses, p.due().Sub(now))
		now = p.due()
	}
	want := []time.Duration{5, 5, 5, 5, 5, 5, 10, 10, 10, 10, 10, 10, 20, 20, 20, 20, 20, 20, 40, 40, 40, 40, 40, 40, 80, 80, 80, 80, 80, 80, 160, 160, 160, 160, 160, 160}
	for i := range want {
		want[i] *= time.Second
	}
	g.Expect(pauses[:36]).To(Equal(want))
	for _, pause := range pauses[36:] {
		g.Expect(pause).To(Equal(longestPause))
	}

	now = now.Add(longestPause) // twice the pause since the last one
	p.add(now)
	g.Expect(p.due().Sub(now)).To(Equal(longestPause))
	now = now.Add(2*longestPause + time.Second)
	p.add(now)
	g.Expect(p.due().Sub(now)).To(Equal(shortestPause))
}

func TestPauseStaysShortIfReportsComeNowAndThen(t *testing.T) {
	g := NewWithT(t)
	p, now := pace{}, fixture.Noon
	for i := range 50 {
		p.add(now)
		g.Expect(p.due().Sub(now)).To(Equal(shortestPause))
		if now = now.Add(6 * time.Second); i%6 == 5 {
			now = now.Add(5 * time.Second)
		}
	}
}
