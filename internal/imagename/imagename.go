// SPDX-License-Identifier: Apache-2.0

// Package imagename compares the names of images. It asks no registry, and needs none of
// the packages that do.
package imagename

import (
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Differ reports whether two names are known, and are those of different images.
func Differ(a, b string) bool {
	return a != "" && b != "" && a != b && Canonical(a) != Canonical(b)
}

// Canonical returns the full name of an image without its tag, including the registry.
// Full names can be compared, while there are several short names. A string that is not a
// name is returned unchanged.
func Canonical(image string) string {
	repository, err := name.NewRepository(strings.TrimSuffix(image, "/"))
	if err != nil {
		return image
	}
	return repository.Name()
}
