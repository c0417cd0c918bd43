// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"
)

// checkBuildMetadata finds policies that rank versions of which they cannot tell several
// apart: semver does not compare what follows a plus sign.
func checkBuildMetadata(r *report) {
	found := map[*object]bool{}
	for _, o := range r.byKind[rolloutKind] {
		for _, policy := range r.byName[imagePolicyKind][o.text("spec", "releasesImagePolicy", "name")] {
			if sameNamespace(policy.namespace(), o.namespace()) == yes && !found[policy] {
				found[policy] = true
				r.checkBuildsOf(policy)
			}
		}
	}
}

func (r *report) checkBuildsOf(policy *object) {
	where := at{policy, []string{"spec", "filterTags", "extract"}}
	extract := policy.text(where.path...)
	if !policy.has("spec", "policy", "semver") || !strings.Contains(extract, "+") || policy.isUnknown(where.path...) {
		return
	}
	r.find(where, fmt.Sprintf("%s extracts builds with a plus sign, and semver does not compare them: Flux names any build of a version", policy),
		fmt.Sprintf("write extract: '%s', and a range that admits prereleases, such as >=1.0.0-0", strings.ReplaceAll(extract, "+", "-")))
}
