// SPDX-License-Identifier: Apache-2.0

package releases

import (
	"fmt"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/pattern"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

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
