// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"fmt"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

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
