// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// everyGatePasses checks that the RolloutGates of the Rollout could be read, and that
// none is closed.
func everyGatePasses(gates Gates) *verdict.Hold {
	if gates.Problem != nil {
		return gates.Problem.Hold()
	}
	var closed []string
	for i := range gates.Gates {
		if gate := &gates.Gates[i]; !gate.IsPassing() {
			closed = append(closed, "RolloutGate "+gate.Name)
		}
	}
	for i := range gates.Cluster {
		if gate := &gates.Cluster[i]; !gate.IsPassing() {
			closed = append(closed, clusterGate+gate.Name)
		}
	}
	if len(closed) == 0 {
		return nil
	}
	return &verdict.Hold{Reason: v1alpha1.SomeGatesBlockingReason, Message: "not passing: " + truncate.List(closed)}
}

// everyGateAllows checks that every passing RolloutGate allows this release.
func everyGateAllows(gates []v1alpha1.RolloutGate) check {
	return func(release v1alpha1.VersionInfo) *verdict.Hold {
		var others []string
		for i := range gates {
			if gates[i].IsPassing() && !allowsVersion(&gates[i], release) {
				others = append(others, fmt.Sprintf("RolloutGate %s does not allow %s", gates[i].Name, release.Tag))
			}
		}
		if len(others) == 0 {
			return nil
		}
		return &verdict.Hold{Reason: v1alpha1.NoAllowedVersionsReason, Message: truncate.Join(others, "; ")}
	}
}

// everyScheduleValid checks that every schedule that selects the Rollout could be
// evaluated.
func everyScheduleValid(schedules []Window) *verdict.Hold {
	var invalid []string
	for _, window := range schedules {
		if window.Problem != nil {
			invalid = append(invalid, window.Problem.Message)
		}
	}
	if len(invalid) == 0 {
		return nil
	}
	return &verdict.Hold{Reason: v1alpha1.InvalidScheduleReason, Message: truncate.Join(invalid, "; ")}
}

// everyScheduleOpen checks that every schedule that could be evaluated is open now.
// Nothing can be promoted before the last of the closed schedules opens.
func everyScheduleOpen(schedules []Window) *verdict.Hold {
	var closed []string
	var until time.Time
	never := false
	for _, window := range schedules {
		if window.Problem != nil || window.Open {
			continue
		}
		closed = append(closed, window.Schedule+" is "+window.Message)
		never = never || window.Until.IsZero()
		if window.Until.After(until) {
			until = window.Until
		}
	}
	if len(closed) == 0 {
		return nil
	}
	if never {
		until = time.Time{}
	}
	return &verdict.Hold{Reason: v1alpha1.ScheduleClosedReason, Message: truncate.List(closed), Until: until}
}

// Described returns what the author of a gate or a schedule says of it, on one line. It is
// empty if nothing is said.
func Described(o metav1.Object) string {
	said := []string{o.GetAnnotations()[v1alpha1.PrettyNameAnnotation], o.GetAnnotations()[v1alpha1.DescriptionAnnotation]}
	said = slices.DeleteFunc(said, func(text string) bool { return text == "" })
	return truncate.Line(strings.Join(said, ": "), verdict.LongestComplaint)
}

// Blocking returns the names of the gates, schedules or Environments that hold a release
// for a reason.
func Blocking(in Input, reason string, release v1alpha1.VersionInfo) []string {
	var all []string
	for i := range in.Gates.Gates {
		if gate := &in.Gates.Gates[i]; holds(gate, reason, release) {
			all = append(all, gate.Name)
		}
	}
	for i := range in.Gates.Cluster {
		if reason == v1alpha1.SomeGatesBlockingReason && !in.Gates.Cluster[i].IsPassing() {
			all = append(all, shownGate(clusterGate+in.Gates.Cluster[i].Name))
		}
	}
	for _, window := range in.Gates.Schedules {
		if window.holds(reason) {
			all = append(all, window.Schedule)
		}
	}
	return slices.Concat(all, in.approving().blocking(reason, release), in.upstreams().Blocking(reason, release))
}

func holds(gate *v1alpha1.RolloutGate, reason string, release v1alpha1.VersionInfo) bool {
	switch reason {
	case v1alpha1.SomeGatesBlockingReason:
		return !gate.IsPassing()
	case v1alpha1.NoAllowedVersionsReason:
		return !allowsVersion(gate, release)
	}
	return false
}

func (w Window) holds(reason string) bool {
	switch reason {
	case v1alpha1.ScheduleClosedReason:
		return w.Problem == nil && !w.Open
	case v1alpha1.InvalidScheduleReason:
		return w.Problem != nil
	}
	return false
}

// allowsVersion applies only allowedVersions. If it is absent, it filters nothing.
func allowsVersion(gate *v1alpha1.RolloutGate, release v1alpha1.VersionInfo) bool {
	return gate.Spec.AllowedVersions == nil || releases.Contain(*gate.Spec.AllowedVersions, release)
}

// namedByGates reports whether all passing gates that name versions name this one.
func namedByGates(gates []v1alpha1.RolloutGate, release v1alpha1.VersionInfo) bool {
	for i := range gates {
		named := gates[i].Spec.AllowedVersions
		if gates[i].IsPassing() && named != nil && len(*named) > 0 && !releases.Contain(*named, release) {
			return false
		}
	}
	return true
}

// Bypassed returns the candidate that a user lets go past the gates; empty if there is
// none.
func Bypassed(rollout *v1alpha1.Rollout, candidates []Verdict) string {
	if candidate := verdictOf(candidates, rollout.Annotations[v1alpha1.BypassGatesAnnotation]); candidate != nil {
		return candidate.Release.Tag
	}
	return ""
}

// shown returns all gates, sorted by name.
func (g Gates) shown() []v1alpha1.RolloutGate {
	return slices.SortedFunc(slices.Values(slices.Concat(g.Gates, g.Copies)), func(a, b v1alpha1.RolloutGate) int {
		return strings.Compare(a.Name, b.Name)
	})
}

// Summaries returns each gate as it was evaluated, and whether a user lets one of the
// candidates go past it.
func Summaries(in Input, candidates []Verdict) []v1alpha1.RolloutGateStatusSummary {
	var all []v1alpha1.RolloutGateStatusSummary
	var offered []v1alpha1.VersionInfo
	for i := range candidates {
		offered = append(offered, candidates[i].Release)
	}
	wanted, bypassed := releases.TagsOf(offered), Bypassed(in.Rollout, candidates)
	people := in.approving()
	for _, gate := range in.Gates.shown() {
		judged := summary(&gate, wanted)
		judged.BypassGates = bypassed != ""
		all = append(all, people.shown(judged, "RolloutGate "+gate.Name, offered))
	}
	for i := range in.Gates.Cluster {
		gate := &v1alpha1.RolloutGate{Spec: v1alpha1.RolloutGateSpec{Passing: in.Gates.Cluster[i].Spec.Passing}}
		gate.Name = shownGate(clusterGate + in.Gates.Cluster[i].Name)
		judged := summary(gate, wanted)
		judged.BypassGates = bypassed != ""
		all = append(all, people.shown(judged, clusterGate+in.Gates.Cluster[i].Name, offered))
	}
	if free := Mirrored(in, candidates); free != nil {
		gate := &v1alpha1.RolloutGate{Spec: v1alpha1.RolloutGateSpec{AllowedVersions: &free}}
		gate.Name = MirrorName(in.Rollout)
		shown := summary(gate, wanted)
		shown.Message, shown.BypassGates = "shows what environments, quarantines, failures and gates of the cluster hold", bypassed != ""
		all = append(all, shown)
	}
	return append(all, in.upstreams().Summaries(offered, bypassed)...)
}

func summary(gate *v1alpha1.RolloutGate, wanted map[string]bool) v1alpha1.RolloutGateStatusSummary {
	passing := gate.IsPassing()
	s := v1alpha1.RolloutGateStatusSummary{Name: gate.Name, Passing: &passing}
	switch {
	case !passing:
		s.Message = "holds back every release"
	case gate.Spec.AllowedVersions == nil:
		s.Message = "lets every release through"
	default:
		allowed := *gate.Spec.AllowedVersions
		s.AllowedVersions = releases.ListedVersions(allowed, wanted)
		s.Message = fmt.Sprintf("lets %s through", verdict.Count(len(allowed), "version"))
		if listed := len(s.AllowedVersions); listed < len(allowed) {
			s.Message += fmt.Sprintf(", of which %d are listed", listed)
		}
	}
	return s
}

// mostMirrored is how many versions the mirror gate lets through: the newest ones.
const mostMirrored = 100

// MirrorName returns the name of the gate that mirrors holds of a Rollout.
func MirrorName(rollout *v1alpha1.Rollout) string {
	return truncate.Name(rollout.Name+"-holds", truncate.LongestName)
}

// Mirrored returns the versions that a gate would let through that stood for the holds that
// clients cannot see that know only gates, newest first. It is nil if there are no such holds:
// then no gate is needed.
func Mirrored(in Input, candidates []Verdict) []string {
	if !slices.ContainsFunc(candidates, in.hidden) {
		return nil
	}
	free := []string{}
	for _, candidate := range candidates {
		if !in.hidden(candidate) && len(free) < mostMirrored {
			free = append(free, candidate.Release.Tag)
		}
	}
	return free
}

// hidden reports whether such clients cannot see a hold: they know the gates of the namespace.
func (in Input) hidden(v Verdict) bool {
	in.Gates = Gates{Cluster: in.Gates.Cluster}
	return v.heldFor(verdict.IsUnknownToOthers) || slices.ContainsFunc(v.Holds, func(h verdict.Hold) bool {
		return len(Blocking(in, h.Reason, v.Release)) > 0
	})
}
