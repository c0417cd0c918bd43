// SPDX-License-Identifier: Apache-2.0

package releases_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

var anySemver = releases.OrderSpec{Kind: releases.BySemver, Range: ">=0.0.0-0"}

func order(spec releases.OrderSpec) releases.Order {
	o, err := releases.NewOrder(spec)
	if err != nil {
		panic(err)
	}
	return o
}

func diff(t *testing.T, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("unexpected (-want +got):\n%s", d)
	}
}
