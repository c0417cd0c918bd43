// SPDX-License-Identifier: Apache-2.0

package program

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNear(t *testing.T) {
	known := []string{"shop", "shop-api", "web", "checkout", "a"}
	for name, want := range map[string][]string{
		"shp":       {"shop"},
		"api":       {"shop-api"},
		"ceckuot":   nil,
		"checkoutt": {"checkout"},
		"hceckout":  {"checkout"},
		"wbe":       {"web"},
		"cart":      nil,
		"b":         nil,
	} {
		if diff := cmp.Diff(want, near(name, known)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
