// SPDX-License-Identifier: Apache-2.0

// Package features defines the features of the controller that --feature-gates can
// disable, or enable before they are the default.
package features

import (
	"maps"

	fluxfeatures "github.com/fluxcd/pkg/runtime/features"
)

// ReleaseMetadata makes the controller query registries for the metadata of releases:
// revision, time, title and others, and for their tags where Flux does not show all.
// Without it, releases are known only by tag and digest, and only the tags that Flux shows
// are known. Without EnvironmentReports as well, the controller contacts no registry and
// reads neither Secrets nor ServiceAccounts, so the role for these may be omitted.
//
// It is enabled since v0.1.
const ReleaseMetadata = "ReleaseMetadata"

// EnvironmentReports makes the controller publish what Environments of backend oci say, as
// signed reports in registries, and read the reports of their upstreams in other clusters.
// Without it, these upstreams hold every release.
//
// It is enabled since v0.1.
const EnvironmentReports = "EnvironmentReports"

// HealthProbes makes the controller measure HealthChecks of the classes prometheus,
// http, job and object. Without it, these are left to other controllers.
//
// It is enabled since v0.1.
const HealthProbes = "HealthProbes"

// defaults contains the defaults of all feature gates.
var defaults = map[string]bool{
	ReleaseMetadata:    true,
	EnvironmentReports: true,
	HealthProbes:       true,
}

// Defaults returns every feature gate with its default.
func Defaults() map[string]bool { return maps.Clone(defaults) }

// Enabled reports whether a feature is enabled. It returns an error if the feature does
// not exist, or if the command line has not been read yet.
func Enabled(feature string) (bool, error) { return fluxfeatures.Enabled(feature) }
