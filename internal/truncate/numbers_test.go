// SPDX-License-Identifier: Apache-2.0

package truncate_test

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

func TestNumbersAreNoChange(t *testing.T) {
	for name, tt := range map[string]struct {
		a, b string
		same bool
	}{
		"the same":               {"it waits", "it waits", true},
		"another duration":       {"Source artifact not found, retrying in 30s", "Source artifact not found, retrying in 1m0s", true},
		"another temporary file": {"stat /tmp/kustomization-123/deploy: no such file", "stat /tmp/kustomization-4567/deploy: no such file", true},
		"another count":          {"3 of 5 are ready", "4 of 5 are ready", true},
		"another dependency":     {"dependency 'shop/db' is not ready", "dependency 'shop/cache' is not ready", false},
		"another cause":          {"connection refused", "no such host", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := truncate.SameButNumbers(tt.a, tt.b); got != tt.same {
				t.Errorf("%q and %q: %t, want %t", tt.a, tt.b, got, tt.same)
			}
		})
	}
}
