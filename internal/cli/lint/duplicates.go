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

// definition is an object that is defined differently elsewhere.
type definition struct{ object, other *object }

// definitions returns the objects that are defined several times, differently, and separates
// those that nothing applies together. An object without a namespace may be a part of
// several environments, and is not compared.
func (s *set) definitions() (together, apart []definition) {
	for _, kind := range kinds.All {
		known := map[string][]*object{}
		for _, o := range s.byKind[kind.GroupKind()] {
			if !kind.Once || o.namespace() == "" && !kind.Global || o.isUnknown("metadata", "name") || o.isUnknown("metadata", "namespace") || !isCompared(o) {
				continue
			}
			different := slices.DeleteFunc(slices.Clone(known[o.key()]), func(other *object) bool { return reflect.DeepEqual(o.content, other.content) })
			known[o.key()] = append(known[o.key()], o)
			switch at := slices.IndexFunc(different, func(other *object) bool { return s.appliedTogether(o.file, other.file) }); {
			case at >= 0:
				together = append(together, definition{o, different[at]})
			case len(different) > 0:
				apart = append(apart, definition{o, different[0]})
			}
		}
	}
	return together, apart
}

// checkDuplicates finds objects that are defined twice, differently. Definitions that
// nothing applies together are for different clusters, as far as one can see.
func (r *report) checkDuplicates() {
	for _, d := range r.together {
		r.find(at{object: d.object}, fmt.Sprintf("%s is defined differently in %s:%d", d.object, d.other.file, d.other.line()), "keep one of them")
	}
	for _, d := range r.apart {
		r.skip(at{object: d.object}, fmt.Sprintf("%s:%d defines it differently, and nothing here applies both", d.other.file, d.other.line()))
	}
}
