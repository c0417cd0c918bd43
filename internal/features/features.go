// SPDX-License-Identifier: Apache-2.0

// Package features says what of the controller can be switched off, or on
// before it is the default, with --feature-gates.
package features

import (
	"maps"

	fluxfeatures "github.com/fluxcd/pkg/runtime/features"
)

// ReleaseMetadata has registries asked what they say of releases: revision,
// time, title and the like, and which tags they have where Flux does not show all.
// Without it the controller talks to no registry and reads neither Secrets nor
// ServiceAccounts, so that the role for these may be left out. Releases are then
// known by tag and digest alone, and of many tags those that Flux shows.
//
// On from v0.1.
const ReleaseMetadata = "ReleaseMetadata"

// defaults of all feature gates.
var defaults = map[string]bool{
	ReleaseMetadata: true,
}

// Defaults returns every feature gate with its default.
func Defaults() map[string]bool { return maps.Clone(defaults) }

// Enabled reports whether a feature is on. It is an error to ask for one that
// does not exist, or before the command line has been read.
func Enabled(feature string) (bool, error) { return fluxfeatures.Enabled(feature) }
