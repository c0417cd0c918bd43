// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"slices"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
)

// mostFollowed is how many environments are looked at in the search for a cycle. Real
// chains have a handful.
const mostFollowed = 256

// Cycle returns the names of the environments through which an environment comes after
// itself, beginning and ending with it; none if it does not. upstreams returns those that
// an environment comes after.
func Cycle(start *environmentsv1.Environment, upstreams func(*environmentsv1.Environment) []*environmentsv1.Environment) []string {
	seen := map[[2]string]bool{}
	var follow func(e *environmentsv1.Environment, path []string) []string
	follow = func(e *environmentsv1.Environment, path []string) []string {
		for _, u := range upstreams(e) {
			key, longer := keyOf(u), append(slices.Clone(path), u.Spec.Environment)
			switch {
			case key == keyOf(start):
				return longer
			case seen[key] || len(seen) >= mostFollowed:
				continue
			}
			seen[key] = true
			if found := follow(u, longer); found != nil {
				return found
			}
		}
		return nil
	}
	return follow(start, []string{start.Spec.Environment})
}

func keyOf(e *environmentsv1.Environment) [2]string { return [2]string{e.Namespace, e.Name} }
