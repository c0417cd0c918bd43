// SPDX-License-Identifier: Apache-2.0

package observer

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/faults/record"
)

// Replay checks every state that the objects of some namespaces have ever had, and fails
// the test if a promise was broken.
func Replay(tb testing.TB, plane *controlplane.ControlPlane, namespaces ...string) *Story {
	tb.Helper()
	story := Judge(record.Remembered(tb, plane, namespaces...))
	for _, broken := range story.Broken {
		tb.Error(broken)
	}
	return story
}
