// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestStopLeavesNoGoroutine(t *testing.T) {
	before := goleak.IgnoreCurrent()
	s := start(t, controlplane.Options{ImageScanner: true})
	s.push("1.0.0")
	policy := shopPolicy()
	s.create(shopScan(s.Registry.Host()), policy)
	eventually(s, policy, "1.0.0 chosen", chose("1.0.0"))
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, before)
}
