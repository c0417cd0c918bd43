// SPDX-License-Identifier: Apache-2.0

package releases_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

// ociTag is the grammar of a tag in the OCI distribution specification.
var ociTag = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}$`)

// FuzzIsTag checks that IsTag accepts exactly what the specification accepts.
func FuzzIsTag(f *testing.F) {
	for _, s := range []string{
		"", "1.0.0", "v1.0.0-rc.1", ".hidden", "-dash", "_under", "a b", "a\n", "\x00", "é", "a:b", "a/b", "1.0.0+build", "\u202e1",
		strings.Repeat("a", 128), strings.Repeat("a", 129),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := releases.IsTag(s), ociTag.MatchString(s); got != want {
			t.Errorf("%q is a tag: %t, want %t", s, got, want)
		}
	})
}
