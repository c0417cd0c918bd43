// SPDX-License-Identifier: Apache-2.0

package truncate_test

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

func TestDurationsAreNoChange(t *testing.T) {
	for name, tt := range map[string]struct {
		a, b string
		same bool
	}{
		"the same":            {"it failed", "it failed", true},
		"another duration":    {"health check failed after 25.062501ms: x", "health check failed after 1m0.5s: x", true},
		"another object":      {"failed after 1s: Deployment a", "failed after 1s: Deployment b", false},
		"a version is none":   {"cannot pull 1.2.0", "cannot pull 1.3.0", false},
		"nor is a name":       {"Pod web-5s is down", "Pod web-6m is down", true},
		"nor a digest":        {"sha256:12ab34cd", "sha256:12ab34ce", false},
		"a number of seconds": {"30 of 40", "31 of 40", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := truncate.SameButDurations(tt.a, tt.b); got != tt.same {
				t.Errorf("%q and %q: %t, want %t", tt.a, tt.b, got, tt.same)
			}
		})
	}
}
