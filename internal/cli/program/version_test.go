// SPDX-License-Identifier: Apache-2.0

package program

import (
	"runtime/debug"
	"testing"
)

func TestVersionIsThatOfTheReleaseOrOfTheModule(t *testing.T) {
	module := func(version string) *debug.BuildInfo { return &debug.BuildInfo{Main: debug.Module{Version: version}} }
	for name, tt := range map[string]struct {
		linked string
		info   *debug.BuildInfo
		want   string
	}{
		"of a release":                      {"v1.2.0", module("v1.1.0"), "v1.2.0"},
		"by go install":                     {"", module("v1.2.0"), "v1.2.0"},
		"from a working tree":               {"", module("(devel)"), "dev"},
		"by a build that notes no versions": {"", module(""), "dev"},
		"by a build that notes nothing":     {"", nil, "dev"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := VersionOf(tt.linked, tt.info); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
