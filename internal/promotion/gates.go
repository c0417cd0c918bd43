// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// gateReasons are the reasons by which gates and schedules hold a candidate.
var gateReasons = []string{
	v1alpha1.SomeGatesBlockingReason,
	v1alpha1.NoAllowedVersionsReason,
	v1alpha1.ScheduleNotEvaluatedReason,
	v1alpha1.GateListFailedReason,
}

// HeldByGates reports whether a gate or a schedule holds the candidate.
func (v Verdict) HeldByGates() bool { return v.HeldBy(gateReasons...) }

// everyGateAllows: each RolloutGate of the Rollout lets the release through.
func everyGateAllows(in Input, release v1alpha1.VersionInfo) *Hold {
	if in.Gates.Problem != nil {
		return &Hold{Reason: in.Gates.Problem.Reason, Message: in.Gates.Problem.Message}
	}
	if closed := closedGates(in.Gates.Gates); len(closed) > 0 {
		return &Hold{
			Reason:  v1alpha1.SomeGatesBlockingReason,
			Message: "not passing: " + strings.Join(closed, ", "),
		}
	}
	for i := range in.Gates.Gates {
		if gate := &in.Gates.Gates[i]; !allowsVersion(gate, release.Tag) {
			return &Hold{
				Reason:  v1alpha1.NoAllowedVersionsReason,
				Message: fmt.Sprintf("RolloutGate %s does not allow %s", gate.Name, release.Tag),
			}
		}
	}
	return nil
}

// noScheduleSelects: no schedule applies to the Rollout. Schedules are not
// evaluated yet, and what cannot be evaluated blocks.
func noScheduleSelects(in Input, _ v1alpha1.VersionInfo) *Hold {
	if len(in.Gates.Schedules) == 0 {
		return nil
	}
	return &Hold{
		Reason: v1alpha1.ScheduleNotEvaluatedReason,
		Message: fmt.Sprintf("this version of the controller cannot evaluate %s and therefore holds automatic promotions",
			strings.Join(in.Gates.Schedules, ", ")),
	}
}

func closedGates(gates []v1alpha1.RolloutGate) []string {
	var closed []string
	for i := range gates {
		if !gates[i].IsPassing() {
			closed = append(closed, "RolloutGate "+gates[i].Name)
		}
	}
	return closed
}

// allowsVersion applies allowedVersions alone: absent it filters nothing.
func allowsVersion(gate *v1alpha1.RolloutGate, tag string) bool {
	return gate.Spec.AllowedVersions == nil || slices.Contains(*gate.Spec.AllowedVersions, tag)
}

// Summaries shows each gate as it was judged, and whether a person lets one of
// the candidates past it.
func Summaries(in Input, candidates []Verdict) []v1alpha1.RolloutGateStatusSummary {
	var all []v1alpha1.RolloutGateStatusSummary
	for i := range in.Gates.Gates {
		shown := summary(&in.Gates.Gates[i])
		shown.BypassGates = Bypassed(in, candidates) != ""
		all = append(all, shown)
	}
	return all
}

func summary(gate *v1alpha1.RolloutGate) v1alpha1.RolloutGateStatusSummary {
	passing := gate.IsPassing()
	s := v1alpha1.RolloutGateStatusSummary{Name: gate.Name, Passing: &passing}
	switch {
	case !passing:
		s.Message = "holds back every release"
	case gate.Spec.AllowedVersions == nil:
		s.Message = "lets every release through"
	default:
		s.AllowedVersions = slices.Clone(*gate.Spec.AllowedVersions)
		if s.AllowedVersions == nil {
			s.AllowedVersions = []string{}
		}
		s.Message = fmt.Sprintf("lets %d versions through", len(s.AllowedVersions))
	}
	return s
}
