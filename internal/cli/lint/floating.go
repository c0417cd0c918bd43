// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"

	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
)

// checkFloatingTag finds the ImagePolicies of Rollouts that admit a single tag.
func checkFloatingTag(r *report) {
	found := map[*object]bool{}
	for _, o := range r.byKind[rolloutKind] {
		if r.getsDigests(o) {
			continue
		}
		for _, policy := range r.byName[imagePolicyKind][o.text("spec", "releasesImagePolicy", "name")] {
			tag, floating := floatingTag(policy)
			if !floating || found[policy] || sameNamespace(policy.namespace(), o.namespace()) != yes {
				continue
			}
			found[policy] = true
			r.find(at{policy, []string{"spec", "filterTags", "pattern"}},
				fmt.Sprintf("the policy admits a single tag, %s: what is pushed to it next goes out without a decision, and no gate or schedule can hold it", tag),
				"push each release under a tag of its own, and admit these tags; or let the Rollout write digests, so that what is pushed again waits, too")
		}
	}
}

// floatingTag returns the only tag that a policy admits.
func floatingTag(policy *object) (string, bool) {
	spec := releases.OrderSpec{
		Kind: releases.ByAppearance, Pattern: policy.text("spec", "filterTags", "pattern"), Extract: policy.text("spec", "filterTags", "extract"),
	}
	for field, kind := range map[string]releases.OrderKind{
		"semver": releases.BySemver, "numerical": releases.ByNumber, "alphabetical": releases.ByAlphabet,
	} {
		if policy.has("spec", "policy", field) {
			spec.Kind = kind
		}
	}
	spec.Range = policy.text("spec", "policy", "semver", "range")
	if hasVariable(spec.Pattern) || hasVariable(spec.Extract) || hasVariable(spec.Range) {
		return "", false
	}
	order, err := releases.NewOrder(spec)
	if err != nil {
		return "", false
	}
	return order.Floating()
}
