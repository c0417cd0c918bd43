// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

// mostNamed is how many objects a message names.
const mostNamed = 5

// verdict combines the phases. A failure outweighs everything, and so does it if objects
// that were there are missing. An object that could not be judged, or is not there yet, keeps the others
// from being good.
func (l *look) verdict(seen bool) health.Outcome {
	value := fmt.Sprintf("%d/%d", len(l.in[workload.Current]), max(l.total, l.minimum))
	switch failed := l.in[workload.Failed]; {
	case len(failed) > 0:
		return health.Bad(value, l.describe(workload.Failed))
	case l.total < l.minimum && !seen:
		return health.NoData(value, l.missing()+"; waiting for it")
	case l.total < l.minimum:
		return health.Bad(value, l.missing())
	case l.err != nil:
		return health.Unobserved(fmt.Sprintf("%s: %s", l.describe(workload.Unknown), l.err))
	case len(l.in[workload.Current]) < l.total:
		return health.NoData(value, l.describe(l.unfinished()...))
	}
	return health.Good(value, l.allCurrent())
}

func (l *look) missing() string {
	if l.name != "" {
		return fmt.Sprintf("%s %s does not exist", l.kind.Kind, l.name)
	}
	return fmt.Sprintf("the selector selects %d of kind %s, and spec.object.minimum is %d", l.total, l.kind.Kind, l.minimum)
}

func (l *look) allCurrent() string {
	switch {
	case l.total == 0:
		return fmt.Sprintf("there is no %s, and none is needed", l.kind.Kind)
	case l.name != "":
		return fmt.Sprintf("%s %s is %s", l.kind.Kind, l.name, workload.Current)
	}
	return fmt.Sprintf("all of kind %s are %s", l.kind.Kind, workload.Current)
}

// unfinished returns the phases that objects are in, except Current.
func (l *look) unfinished() []workload.Phase {
	phases := slices.Sorted(maps.Keys(l.in))
	return slices.DeleteFunc(phases, func(p workload.Phase) bool { return p == workload.Current })
}

// describe names the objects in some phases, in a fixed order: a message must not change
// without a cause.
func (l *look) describe(phases ...workload.Phase) string {
	var all []string
	for _, phase := range phases {
		for _, name := range l.in[phase] {
			all = append(all, fmt.Sprintf("%s is %s", name, phase))
		}
	}
	slices.SortFunc(all, cmp.Compare[string])
	if more := len(all) - mostNamed; more > 0 {
		all = append(all[:mostNamed], fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%s %s", l.kind.Kind, strings.Join(all, ", "))
}
