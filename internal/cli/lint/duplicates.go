// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"reflect"

	"github.com/fluxrollouts/rollout-controller/internal/cli/kinds"
)

// isCompared reports whether two definitions of an object are a mistake. Manifests have
// many HelmReleases that no Rollout writes, often one as a patch of another.
func isCompared(o *object) bool { return o.groupKind() != helmReleaseKind || len(o.assignments()) > 0 }

// checkDuplicates finds objects that are defined twice, differently. An object without a
// namespace may be a part of several environments, and is not compared.
func (r *report) checkDuplicates() {
	for _, kind := range kinds.All {
		first := map[string]*object{}
		for _, o := range r.byKind[kind.GroupKind()] {
			if !kind.Once || o.namespace() == "" && !kind.Global || o.isUnknown("metadata", "name") || o.isUnknown("metadata", "namespace") || !isCompared(o) {
				continue
			}
			other := first[o.key()]
			if other == nil {
				first[o.key()] = o
				continue
			}
			if !reflect.DeepEqual(o.content, other.content) {
				r.find(at{object: o}, fmt.Sprintf("%s is defined differently in %s:%d", o, other.file, other.line()),
					"keep one of them; if they are for different clusters, lint these separately")
			}
		}
	}
}
