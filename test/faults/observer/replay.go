// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/faults/record"
)

// Replay checks every state that the objects of some namespaces have ever had, and fails
// the test if a promise was broken.
func Replay(tb testing.TB, plane *controlplane.ControlPlane, namespaces ...string) *Findings {
	tb.Helper()
	found := Judge(record.Remembered(tb, plane, namespaces...))
	for _, broken := range found.Broken {
		tb.Error(broken)
	}
	return found
}
