// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/simulation"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestPaceIsTheMedianOfWhatWasPromotedHere(t *testing.T) {
	took := func(d time.Duration) *fixture.EntryBuilder {
		return fixture.MakeEntry("1.0.0").At(fixture.Noon).BakeStart(fixture.Noon.Add(d)).Succeeded()
	}
	for name, tt := range map[string]struct {
		history []*fixture.EntryBuilder
		want    time.Duration
		said    string
	}{
		"nothing":           {nil, time.Minute, "a guess: the history shows no earlier promotion"},
		"three":             {[]*fixture.EntryBuilder{took(time.Hour), took(20 * time.Second), took(40 * time.Second)}, 40 * time.Second, "the median of 3 promotions here"},
		"one that failed":   {[]*fixture.EntryBuilder{fixture.MakeEntry("1.0.0").Failed()}, time.Minute, "a guess: the history shows no earlier promotion"},
		"a retry says none": {[]*fixture.EntryBuilder{took(time.Hour).Retried(fixture.Noon), took(time.Second)}, time.Second, "the median of 1 promotion here"},
	} {
		t.Run(name, func(t *testing.T) {
			var history []v1alpha1.DeploymentHistoryEntry
			for _, entry := range tt.history {
				history = append(history, entry.Obj())
			}
			if got, said := simulation.Pace(history); got != tt.want || said != tt.said {
				t.Errorf("got %s, %q; want %s, %q", got, said, tt.want, tt.said)
			}
		})
	}
}
