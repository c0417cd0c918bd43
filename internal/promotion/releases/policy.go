// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// Policy is what a Flux ImagePolicy offers. It is read without interpretation.
type Policy struct {
	// Name of the ImagePolicy.
	Name string
	// Image whose tags the policy ranks, without a tag; empty if it is not known.
	Image string
	// Order in which the policy ranks its releases. It also reports which releases the
	// policy admits.
	Order Order
	// Latest is the release that the policy names; nil if it names none.
	Latest *v1alpha1.VersionInfo
	// LatestImage is the image of Latest, without a tag; empty if it is not known. It differs
	// from Image until Flux has scanned another image and evaluated the policy again.
	LatestImage string
	// Scanned are tags that the last scan of the registry found.
	Scanned []string
	// Complete is true if Scanned contains all tags of the registry.
	Complete bool
	// Partial explains why tags that the last scan found are missing from Scanned; empty if
	// none are missing.
	Partial string
	// Problem is set if the policy could not be read or used, or reports a problem.
	Problem *verdict.Problem
	// Blocking is true if nothing may be promoted because of Problem.
	Blocking bool
}

// Withdrawn returns a function that reports whether a release is known to be deleted from
// the registry. The release that the policy names is available, whatever an older copy of
// the scan shows.
func (p Policy) Withdrawn() func(tag string) bool {
	if !p.Complete {
		return func(string) bool { return false }
	}
	there := make(map[string]bool, len(p.Scanned)+1)
	for _, tag := range p.Scanned {
		there[tag] = true
	}
	if p.Latest != nil {
		there[p.Latest.Tag] = true
	}
	return func(tag string) bool { return !there[tag] }
}
