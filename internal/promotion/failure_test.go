// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestWayOutOfAFailureNamesTheLastGoodRelease(t *testing.T) {
	backTo := func(tag string) string {
		return "last good release: " + tag + "; roll back with spec.wantedVersion, or annotate with retry or unblock-failed"
	}
	const nowhere = "no good release is known; pin another one with spec.wantedVersion, or annotate with retry or unblock-failed"
	for name, test := range map[string]struct {
		history []*fixture.EntryBuilder
		policy  releases.Policy
		want    string
	}{
		"the one before": {
			history: []*fixture.EntryBuilder{entry("1.2.0").Failed(), entry("1.1.0").Succeeded(), entry("1.0.0").Succeeded()},
			want:    backTo("1.1.0"),
		},
		"not what was cancelled": {
			history: []*fixture.EntryBuilder{entry("1.2.0").Failed(), entry("1.1.0").Cancelled(), entry("1.0.0").Succeeded()},
			want:    backTo("1.0.0"),
		},
		"not what failed before": {
			history: []*fixture.EntryBuilder{entry("1.2.0").Failed(), entry("1.1.0").Failed(), entry("1.0.0").Succeeded()},
			want:    backTo("1.0.0"),
		},
		"not what failed after it had succeeded": {
			history: []*fixture.EntryBuilder{
				entry("1.2.0").Failed(), entry("1.1.0").Failed(), entry("1.1.0").Succeeded(), entry("1.0.0").Succeeded(),
			},
			want: backTo("1.0.0"),
		},
		"what succeeded after it had failed": {
			history: []*fixture.EntryBuilder{entry("1.2.0").Failed(), entry("1.1.0").Succeeded(), entry("1.1.0").Failed()},
			want:    backTo("1.1.0"),
		},
		"not the tag that has failed, which had succeeded with other content": {
			history: []*fixture.EntryBuilder{entry("1.2.0").Failed(), entry("1.2.0").Succeeded(), entry("1.0.0").Succeeded()},
			want:    backTo("1.0.0"),
		},
		"not what is gone from the registry": {
			history: []*fixture.EntryBuilder{entry("1.2.0").Failed(), entry("1.1.0").Succeeded(), entry("1.0.0").Succeeded()},
			policy:  releases.Policy{Complete: true, Scanned: []string{"1.2.0", "1.0.0"}},
			want:    backTo("1.0.0"),
		},
		"what a scan does not show, which shows some tags only": {
			history: []*fixture.EntryBuilder{entry("1.2.0").Failed(), entry("1.1.0").Succeeded()},
			policy:  releases.Policy{Scanned: []string{"1.2.0"}},
			want:    backTo("1.1.0"),
		},
		"none, after the first release": {history: []*fixture.EntryBuilder{entry("1.0.0").Failed()}, want: nowhere},
		"none, if nothing has succeeded": {
			history: []*fixture.EntryBuilder{entry("1.2.0").Failed(), entry("1.1.0").Cancelled(), entry("1.0.0").State("Pending")},
			want:    nowhere,
		},
		"one whose name others have made long, in short": {
			history: []*fixture.EntryBuilder{entry("1.2.0").Failed(), entry(strings.Repeat("1", 500)).Succeeded()},
			want:    backTo(strings.Repeat("1", 84) + " … " + strings.Repeat("1", 41)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			var history []v1alpha1.DeploymentHistoryEntry
			for _, e := range test.history {
				history = append(history, e.Obj())
			}
			rollout := fixture.MakeRollout("shop").Obj()
			rollout.Status.History = history
			diff(t, test.want, promotion.WayOut(promotion.Input{Rollout: rollout, Policy: test.policy}))
		})
	}
}
