// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/schedule"
)

var (
	scheduleKinds         = []schema.GroupKind{scheduleKind, clusterScheduleKind}
	rolloutSelectorPath   = []string{"spec", "rolloutSelector"}
	namespaceSelectorPath = []string{"spec", "namespaceSelector"}
)

// eachSchedule visits the schedules of both kinds.
func (s *set) eachSchedule(visit func(*object)) {
	for _, kind := range scheduleKinds {
		for _, o := range s.byKind[kind] {
			visit(o)
		}
	}
}

// selectorFields are the fields with selectors that the controller evaluates.
var selectorFields = map[schema.GroupKind][][]string{
	rolloutKind: {
		selectorPath, child(selectorPath, "selector"), child(selectorPath, "namespaceSelector"),
	},
	scheduleKind:          {rolloutSelectorPath},
	clusterQuarantineKind: {namespaceSelectorPath},
	clusterGateKind:       {rolloutSelectorPath, namespaceSelectorPath},
	clusterScheduleKind:   {rolloutSelectorPath, namespaceSelectorPath},
	coordinationKind:      {{"spec", "labelSelector"}},
}

func checkEvaluation(r *report) {
	for kind, fields := range selectorFields {
		for _, o := range r.byKind[kind] {
			for _, path := range fields {
				r.checkSelector(at{o, path})
			}
		}
	}
	r.eachSpec(func(o *object, spec *v1alpha1.RolloutScheduleSpec) {
		if _, err := schedule.Parse(spec); err != nil {
			r.find(at{o, placeOf(err)}, fmt.Sprintf("%s is closed at all times: %v", o, err), "correct the value")
		}
	})
}

// eachSpec visits the schedules whose spec is known and has the right fields.
func (r *report) eachSpec(visit func(*object, *v1alpha1.RolloutScheduleSpec)) {
	r.eachSchedule(func(o *object) {
		spec, reason := specOf(o)
		if reason != "" {
			r.skip(at{o, []string{"spec"}}, reason)
		}
		if spec != nil {
			visit(o, spec)
		}
	})
}

// placeOf returns the field that an error of package schedule is about.
func placeOf(err error) []string {
	if field, ok := errors.AsType[*schedule.FieldError](err); ok {
		return field.Path
	}
	return []string{"spec"}
}

func (r *report) checkSelector(where at) {
	if where.object.isUnknown(where.path...) {
		return
	}
	if _, err := where.object.compiled(where.path); err != nil {
		r.find(where, fmt.Sprintf("%s cannot be used: %v", strings.Join(where.path, "."), err), "correct the selector")
	}
}

// specOf returns the spec of a schedule, or the reason why it is not known. It returns
// neither if the schema has a finding.
func specOf(o *object) (*v1alpha1.RolloutScheduleSpec, string) {
	spec := &v1alpha1.RolloutScheduleSpec{}
	switch {
	case o.isUnknown("spec"):
		return nil, "it has variables whose values are not known"
	case len(o.problems) > 0 || o.decode(o.fields("spec"), spec) != nil:
		return nil, ""
	}
	return spec, ""
}

func checkUselessSchedules(r *report) {
	r.eachSpec(func(o *object, _ *v1alpha1.RolloutScheduleSpec) {
		r.checkSelectsRollouts(o)
		parsed := r.parsed(o)
		if parsed == nil {
			return // R401 finds it
		}
		if state := parsed.At(r.now); !state.Active && state.Next.IsZero() {
			r.find(at{o, []string{"spec", "rules"}}, fmt.Sprintf("%s will never be active again: its dates are over, or its exceptions leave no time", o),
				"remove it, or correct the dates")
		}
	})
}

func (r *report) checkSelectsRollouts(o *object) {
	answer := no
	for _, rollout := range r.byKind[rolloutKind] {
		answer = max(answer, r.selectsRollout(o, rollout))
	}
	where := at{o, rolloutSelectorPath}
	switch {
	case answer == yes:
	case answer == maybe || !r.live && r.mayMissRollouts(o):
		r.skip(where, "it may select Rollouts that are elsewhere")
	default:
		r.find(where, fmt.Sprintf("%s selects no Rollout", o), "correct spec.rolloutSelector, or the labels of the Rollouts")
	}
}

// mayMissRollouts reports whether Rollouts that a schedule could select may be elsewhere:
// files that have none of its namespace say nothing about it.
func (r *report) mayMissRollouts(o *object) bool {
	return o.groupKind() == clusterScheduleKind || len(r.in(rolloutKind, o.namespace())) == 0 || r.hasExternal(rolloutKind, o.namespace())
}

// selectsRollout reports whether a schedule applies to a Rollout. A selector that cannot
// be evaluated selects everything, as in the controller.
func (s *set) selectsRollout(o, rollout *object) certainty {
	if o.isUnknown(rolloutSelectorPath...) || o.isUnknown(namespaceSelectorPath...) {
		return maybe
	}
	answer := yes
	if selector, err := o.compiled(rolloutSelectorPath); err == nil {
		answer = selectsLabels(selector, rollout)
	}
	if o.groupKind() == scheduleKind {
		return min(answer, sameNamespace(o.namespace(), rollout.namespace()))
	}
	if o.has(namespaceSelectorPath...) {
		selector, err := o.compiled(namespaceSelectorPath)
		if err == nil {
			answer = min(answer, s.selectsNamespace(selector, rollout.namespace()))
		}
	}
	return answer
}

// schedulesOf are the schedules that certainly apply to a Rollout and can be evaluated,
// without those of other clusters.
func (s *set) schedulesOf(rollout *object) []*object {
	var all []*object
	s.eachSchedule(func(o *object) {
		if s.selectsRollout(o, rollout) == yes && s.parsed(o) != nil && !s.separate(o, rollout) {
			all = append(all, o)
		}
	})
	return all
}

// parsed returns a schedule that can be evaluated, or nil. It parses each one once.
func (s *set) parsed(o *object) *schedule.Schedule {
	known, ok := s.schedules[o]
	if !ok {
		if spec, _ := specOf(o); spec != nil {
			known, _ = schedule.Parse(spec)
		}
		s.schedules[o] = known
	}
	return known
}

func names(objects []*object) string {
	var all []string
	for _, o := range objects {
		all = append(all, o.String())
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
