// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// checkShared finds Rollouts that are to go back by themselves, or to report what has
// failed, and that deploy together with others by one object.
func checkShared(r *report) {
	for _, o := range r.byKind[rolloutKind] {
		path := rollbackPath
		if !o.has(path...) {
			path = quarantinePath
		}
		if !o.has(path...) {
			continue
		}
		targets := r.nearTargets(o)
		for _, target := range slices.Concat(targets.kustomizations, targets.helmReleases) {
			if by := r.deployedBy(target); len(by) > 1 {
				r.find(at{o, path}, fmt.Sprintf("%s is deployed by the Rollouts %s: when it becomes unhealthy, nobody knows whose release is the cause, "+
					"so none of them goes back, and none is reported", target, strings.Join(by, ", ")),
					"give each Rollout that goes back by itself a Kustomization or HelmRelease of its own")
				break
			}
		}
	}
}

// deployedBy returns the names of the Rollouts that write into an object, or into the
// source that it consumes, sorted.
func (s *set) deployedBy(target *object) []string {
	all := rolloutsOf(target)
	if source, ok := target.source(); ok {
		for _, repository := range s.byName[schema.GroupKind{Group: repositoryKind.Group, Kind: source.kind}][source.name] {
			if target.consumes(repository) && !s.separate(target, repository) {
				all = append(all, rolloutsOf(repository)...)
			}
		}
	}
	for _, repository := range s.repositoriesIn(target) {
		all = append(all, rolloutsOf(repository)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
