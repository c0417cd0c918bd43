// SPDX-License-Identifier: Apache-2.0

package imagename_test

import (
	"testing"

	"github.com/fluxrollouts/rollout-controller/internal/imagename"
)

func TestImageHasOneNameThatIsCompared(t *testing.T) {
	for image, want := range map[string]string{
		"registry.example.com/shop":         "registry.example.com/shop",
		"registry.example.com/shop/":        "registry.example.com/shop",
		"registry.example.com:5000/a/shop":  "registry.example.com:5000/a/shop",
		"shop":                              "index.docker.io/library/shop",
		"docker.io/acme/shop":               "index.docker.io/acme/shop",
		"acme/shop":                         "index.docker.io/acme/shop",
		"index.docker.io/acme/shop":         "index.docker.io/acme/shop",
		"no name at all":                    "no name at all",
		"":                                  "",
		"registry.example.com/shop:with-it": "registry.example.com/shop:with-it",
	} {
		if got := imagename.Canonical(image); got != want {
			t.Errorf("%q: got %q, want %q", image, got, want)
		}
	}
}

func TestImagesDifferOnlyIfBothAreKnown(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"registry.example.com/shop", "registry.example.com/other", true},
		{"registry.example.com/shop", "registry.example.com/shop/", false},
		{"docker.io/acme/shop", "acme/shop", false},
		{"registry.example.com/shop", "", false},
		{"", "", false},
	} {
		if got := imagename.Differ(tt.a, tt.b); got != tt.want {
			t.Errorf("%q and %q: got %t", tt.a, tt.b, got)
		}
	}
}
