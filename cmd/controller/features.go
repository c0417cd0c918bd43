// SPDX-License-Identifier: Apache-2.0

package main

// The feature gates, which --feature-gates can disable, or enable before they are the
// default.

// releaseMetadata makes the controller query registries for the metadata of releases:
// revision, time, title and others, and for their tags where Flux does not show all.
// Without it, releases are known only by tag and digest, and only the tags that Flux shows
// are known. Without environmentReports as well, the controller contacts no registry and
// reads neither Secrets nor ServiceAccounts, so the role for these may be omitted.
//
// It is enabled since v0.1.
const releaseMetadata = "ReleaseMetadata"

// environmentReports makes the controller publish what Environments of backend oci say, as
// signed reports in registries, and read the reports of their upstreams in other clusters.
// Without it, these upstreams hold every release.
//
// It is enabled since v0.1.
const environmentReports = "EnvironmentReports"

// healthProbes makes the controller measure HealthChecks of the classes prometheus,
// http, job and object. Without it, these are left to other controllers.
//
// It is enabled since v0.1.
const healthProbes = "HealthProbes"

// featureDefaults contains the defaults of all feature gates.
var featureDefaults = map[string]bool{
	releaseMetadata:    true,
	environmentReports: true,
	healthProbes:       true,
}
