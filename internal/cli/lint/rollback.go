// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

var rollbackPath = []string{"spec", "rollback"}

// checkRollbackActs finds Rollouts that are meant to go back by themselves, and never do:
// no release can fail by one of the causes.
func checkRollbackActs(r *report) {
	for _, o := range r.byKind[rolloutKind] {
		spec := r.rollingBack(o)
		if spec == nil {
			continue
		}
		switch where := (at{o, rollbackPath}); r.answersAnything(o, spec.Rollback) {
		case maybe:
			r.skip(where, "whether Flux waits for the health of a release depends on objects that are not known")
		case no:
			r.find(where, "spec.rollback never acts: no release can fail by "+strings.Join(causesOf(spec.Rollback), ", "),
				"set spec.targetHealth: Required, or select a HealthCheck")
		case yes:
		}
	}
}

// rollingBack returns the part of the spec of a Rollout that is about rollbacks. It is nil
// if the Rollout does not go back by itself, or if that is not known.
func (r *report) rollingBack(o *object) *v1alpha1.RolloutSpec {
	spec := &v1alpha1.RolloutSpec{}
	part := map[string]any{"rollback": o.value(rollbackPath...), "deployTimeout": o.value("spec", "deployTimeout")}
	switch {
	case o.fields(rollbackPath...) == nil:
	case o.isUnknown(rollbackPath...) || o.isUnknown("spec", "deployTimeout"):
		r.skip(at{o, rollbackPath}, "it has variables whose values are not known")
	case o.decode(part, spec) != nil: // the schema has a finding
	case spec.RollsBack():
		return spec
	}
	return nil
}

// answersAnything reports whether a release can fail by a cause that is answered.
func (r *report) answersAnything(o *object, rollback *v1alpha1.RolloutRollback) certainty {
	checked, timed := o.has(selectorPath...) || o.has("spec", "targetHealth"), o.has("spec", "deployTimeout")
	switch {
	case checked && rollback.Answers(v1alpha1.CauseHealthCheckFailed), timed && rollback.Answers(v1alpha1.CauseDeployTimeout):
		return yes
	case timed && rollback.Answers(v1alpha1.CauseTargetUnhealthy):
		return r.fluxWaits(o)
	}
	return no
}

// fluxWaits reports whether a Kustomization or HelmRelease of a Rollout waits for the health
// of what it applies.
func (r *report) fluxWaits(rollout *object) certainty {
	targets := r.targets(rollout)
	switch {
	case slices.ContainsFunc(slices.Concat(targets.kustomizations, targets.helmReleases), (*object).waits):
		return yes
	case targets.none(), r.mayBeElsewhere(rollout), r.mayHaveTargets(rollout):
		return maybe
	}
	return no
}

// causesOf returns the causes that a Rollout goes back for.
func causesOf(rollback *v1alpha1.RolloutRollback) []string {
	var all []string
	for _, cause := range []v1alpha1.FailureCause{v1alpha1.CauseHealthCheckFailed, v1alpha1.CauseTargetUnhealthy, v1alpha1.CauseDeployTimeout} {
		if rollback.Answers(cause) {
			all = append(all, string(cause))
		}
	}
	return all
}

// checkOverdue finds rollbacks that are reported as overdue while Flux still waits for the
// release that failed.
func checkOverdue(r *report) {
	for _, o := range r.byKind[rolloutKind] {
		spec := r.rollingBack(o)
		if spec == nil || spec.Rollback.OverdueAfter == nil { // the default is after that
			continue
		}
		overdue, where := spec.Rollback.OverdueAfter.Duration, at{o, child(rollbackPath, "overdueAfter")}
		for _, k := range r.nearTargets(o).kustomizations {
			if wait, ok := k.longestWait(); k.waits() && ok && overdue <= wait {
				r.find(where, fmt.Sprintf("a rollback is overdue after %s, and %s may wait %s for the health of the release that failed", overdue, k, wait),
					"set spec.rollback.overdueAfter to more than that and the time in which the older release becomes healthy, or shorten spec.timeout of the Kustomization")
				break
			}
		}
	}
}

// longestWait returns how long a Kustomization waits for the health of what it applies, and
// whether that is known. Without a timeout, kustomize-controller takes the interval less
// half a minute, and at least half a minute: Kustomization.GetTimeout.
func (o *object) longestWait() (wait time.Duration, known bool) {
	const short = 30 * time.Second
	wait, err := time.ParseDuration(o.text("spec", "timeout"))
	if !o.has("spec", "timeout") {
		wait, err = time.ParseDuration(o.text("spec", "interval"))
		wait -= short
	}
	return max(wait, short), err == nil
}
