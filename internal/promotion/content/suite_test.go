// SPDX-License-Identifier: Apache-2.0

package content_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func rollout() *fixture.RolloutBuilder { return fixture.MakeRollout("shop") }

func entry(tag string) *fixture.EntryBuilder { return fixture.MakeEntry(tag) }

func target(kind, name string, state v1alpha1.TargetState) content.Target {
	return content.Target{Kind: kind, Namespace: fixture.Namespace, Name: name, State: state}
}

func diff(t *testing.T, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("unexpected (-want +got):\n%s", d)
	}
}
