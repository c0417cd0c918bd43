// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/fluxrollouts/rollout-controller/internal/cli/kinds"
)

// isCompared reports whether two definitions of an object are a mistake. Manifests have
// many HelmReleases that no Rollout writes, often one as a patch of another.
func isCompared(o *object) bool { return o.groupKind() != helmReleaseKind || len(o.assignments()) > 0 }

// checkDuplicates finds objects that are defined twice, differently. An object without a
// namespace may be a part of several environments, and is not compared. Definitions that
// nothing applies together are for different clusters, as far as one can see.
func (r *report) checkDuplicates() {
	for _, kind := range kinds.All {
		known := map[string][]*object{}
		for _, o := range r.byKind[kind.GroupKind()] {
			if !kind.Once || o.namespace() == "" && !kind.Global || o.isUnknown("metadata", "name") || o.isUnknown("metadata", "namespace") || !isCompared(o) {
				continue
			}
			r.compare(o, known[o.key()])
			known[o.key()] = append(known[o.key()], o)
		}
	}
}

// compare compares an object with other definitions of it.
func (r *report) compare(o *object, others []*object) {
	different := slices.DeleteFunc(slices.Clone(others), func(other *object) bool { return reflect.DeepEqual(o.content, other.content) })
	for _, other := range different {
		if r.appliedTogether(o.file, other.file) {
			r.find(at{object: o}, fmt.Sprintf("%s is defined differently in %s:%d", o, other.file, other.line()), "keep one of them")
			return
		}
	}
	if len(different) > 0 {
		r.skip(at{object: o}, fmt.Sprintf("%s:%d defines it differently, and nothing here applies both", different[0].file, different[0].line()))
	}
}
