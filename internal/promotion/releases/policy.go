// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"fmt"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/pattern"
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
	// ByDigest is true if every target gets the digest of a release. Then a tag that is pushed
	// again is another release, and waits as any other.
	ByDigest bool
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

// Floating returns the tag of an order that admits only this one, such as latest. There
// will never be another release: what is pushed to the tag changes its content. The tag of
// a complete version is not floating: it pins that version.
func (o Order) Floating() (tag string, floating bool) {
	only, ok := pattern.Only(o.spec.Pattern)
	if !ok || !IsTag(only) || !o.Admits(only) {
		return "", false
	}
	_, err := parseSemver(only)
	return only, err != nil
}

// FloatingTag describes that a policy admits a single tag; nil if it does not. Nothing is
// held for this: users decide by which tags they release.
func FloatingTag(p Policy) *verdict.Problem {
	tag, floating := p.Order.Floating()
	if !floating {
		return nil
	}
	return &verdict.Problem{Reason: v1alpha1.FloatingTagReason, Message: fmt.Sprintf(
		"ImagePolicy %s admits a single tag, %s: what is pushed to it next goes out without a decision, and no gate or schedule can hold it; "+
			"push each release under a tag of its own, and admit these tags", p.Name, tag)}
}

// WithUnnamed adds to the problem of a policy which newer release the registry has, if the
// problem may be why the policy does not name it. Otherwise Flux only has not evaluated the
// policy since the last scan.
func (p Policy) WithUnnamed() Policy {
	if p.Blocking || p.Latest == nil || p.Problem == nil {
		return p
	}
	if reason := p.Problem.Reason; reason != v1alpha1.SuspendedReason && reason != v1alpha1.ImagePolicyNotReadyReason {
		return p
	}
	if tag := p.unnamed(); tag != "" {
		p.Problem = &verdict.Problem{
			Reason:  p.Problem.Reason,
			Message: fmt.Sprintf("%s; %s is in the registry, and ImagePolicy %s does not name it", p.Problem.Message, tag, p.Name),
		}
	}
	return p
}

// unnamed returns the newest scanned tag that is newer than the one that the policy names;
// empty if there is none.
func (p Policy) unnamed() string {
	newest := p.Latest.Tag
	for _, tag := range p.Scanned {
		if result, ok := p.Order.Precedence(tag, newest); ok && result > 0 && IsTag(tag) && p.Order.Admits(tag) {
			newest = tag
		}
	}
	if newest == p.Latest.Tag {
		return ""
	}
	return newest
}
