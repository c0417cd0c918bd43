// SPDX-License-Identifier: Apache-2.0

package promotion_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// Times around noon. Entries of the fixture were recorded at eleven.
var (
	noon   = fixture.Noon
	eleven = noon.Add(-time.Hour)
	one    = noon.Add(time.Hour)
)

const instant = time.Nanosecond

// never is used when time alone changes nothing.
var never time.Time

// anySemver admits every semantic version, prereleases included.
var anySemver = releases.OrderSpec{Kind: releases.BySemver, Range: ">=0.0.0-0"}

// broken is a Problem of an object that could not be read.
var broken = &verdict.Problem{Reason: "Broken", Message: "it is broken"}

// situation builds the Input of a decision at noon. The policy ranks by semver and names
// the last known release.
type situation struct{ input promotion.Input }

func given(rollout *fixture.RolloutBuilder) *situation {
	r := rollout.Obj()
	s := &situation{promotion.Input{Now: noon, Rollout: r, Policy: releases.Policy{Name: "shop", Order: order(anySemver)}}}
	if known := r.Status.AvailableReleases; len(known) > 0 {
		s.names(known[len(known)-1])
	}
	return s
}

func (s *situation) in() promotion.Input { return s.input }

func (s *situation) at(now time.Time) *situation {
	s.input.Now = now
	return s
}

func (s *situation) latest(tag string) *situation { return s.names(fixture.MakeRelease(tag).Obj()) }

func (s *situation) names(release v1alpha1.VersionInfo) *situation {
	s.input.Policy.Latest = &release
	return s
}

func (s *situation) namesNothing() *situation {
	s.input.Policy.Latest = nil
	return s
}

func (s *situation) scanned(tags ...string) *situation {
	s.input.Policy.Scanned = tags
	return s
}

// partial sets why not all tags are known.
func (s *situation) partial(why string) *situation {
	s.input.Policy.Partial = why
	return s
}

// registryHas sets these tags, and no others, as the result of the last scan.
func (s *situation) registryHas(tags ...string) *situation {
	s.input.Policy.Complete = true
	return s.scanned(tags...)
}

func (s *situation) ranked(spec releases.OrderSpec) *situation {
	s.input.Policy.Order = order(spec)
	return s
}

func (s *situation) policyUnreadable() *situation {
	s.input.Policy.Problem, s.input.Policy.Blocking = broken, true
	return s
}

func (s *situation) gates(gates ...*fixture.GateBuilder) *situation {
	s.input.Gates.Gates = nil
	for _, gate := range gates {
		s.input.Gates.Gates = append(s.input.Gates.Gates, *gate.Obj())
	}
	return s
}

func (s *situation) gatesUnreadable() *situation {
	s.input.Gates.Problem = broken
	return s
}

func (s *situation) schedules(windows ...promotion.Window) *situation {
	s.input.Gates.Schedules = windows
	return s
}

// openUntil and closedUntil return schedules; the zero time means never.
func openUntil(t time.Time, name string) promotion.Window {
	return promotion.Window{Schedule: "RolloutSchedule " + name, Open: true, Message: "open", Until: t}
}

func closedUntil(t time.Time, name string) promotion.Window {
	return promotion.Window{Schedule: "RolloutSchedule " + name, Message: "closed for now", Until: t}
}

// checks adds HealthChecks that were not reset for the current promotion.
func (s *situation) checks(checks ...*fixture.HealthCheckBuilder) *situation {
	for _, check := range checks {
		s.input.Health.Checks = append(s.input.Health.Checks, *check.Obj())
	}
	return s
}

// resetChecks adds HealthChecks that were reset for the current promotion. What they
// report came after the reset.
func (s *situation) resetChecks(checks ...*fixture.HealthCheckBuilder) *situation {
	return s.resetChecksFrom(nil, checks...)
}

// resetChecksFrom is resetChecks for checks that had an error before the reset.
func (s *situation) resetChecksFrom(removed *metav1.Time, checks ...*fixture.HealthCheckBuilder) *situation {
	mark := evidence.ResetMark(s.input.Rollout.Current(), removed)
	for _, check := range checks {
		s.checks(check.Mark(s.input.Rollout, mark))
	}
	return s
}

// refused sets why a check cannot be reset.
func (s *situation) refused(name, why string) *situation {
	s.input.Health.Rejected = map[string]string{fixture.Namespace + "/" + name: why}
	return s
}

// shared sets that a check is about what several Rollouts deploy.
func (s *situation) shared(name string) *situation {
	s.input.Health.Shared = map[string]bool{fixture.Namespace + "/" + name: true}
	return s
}

func (s *situation) healthUnreadable() *situation {
	s.input.Health.Problem = broken
	return s
}

func (s *situation) targets(targets ...content.Target) *situation {
	s.input.Targets.All = targets
	return s
}

func (s *situation) targetsUnreadable() *situation {
	s.input.Targets.Problem = broken
	return s
}

// owned sets versions of target fields that the controller once wrote.
func (s *situation) owned(versions ...string) *situation {
	s.input.Targets.Owned = versions
	return s
}

// carried sets versions of target fields, no matter who set them.
func (s *situation) carried(versions ...string) *situation {
	s.input.Targets.Carried = versions
	return s
}

func applied(name string) content.Target { return target(name, v1alpha1.TargetApplied, "") }

func pending(name string) content.Target { return target(name, v1alpha1.TargetPending, "") }

// pulledOnly is an OCIRepository that has pulled the release, and that nothing is known to
// apply.
func pulledOnly(name string) content.Target {
	return content.Target{
		Kind: "OCIRepository", Namespace: fixture.Namespace, Name: name, State: v1alpha1.TargetApplied, PulledOnly: true,
		Reason: v1alpha1.TargetNoConsumer, Message: "nothing applies it",
	}
}

func target(name string, state v1alpha1.TargetState, message string) content.Target {
	return content.Target{Kind: "Kustomization", Namespace: fixture.Namespace, Name: name, State: state, Message: message}
}

// order returns an order from a spec that is known to be valid.
func order(spec releases.OrderSpec) releases.Order {
	o, err := releases.NewOrder(spec)
	if err != nil {
		panic(err)
	}
	return o
}

func rollout() *fixture.RolloutBuilder { return fixture.MakeRollout("shop") }

func entry(tag string) *fixture.EntryBuilder { return fixture.MakeEntry(tag) }

func entries(builders ...*fixture.EntryBuilder) []v1alpha1.DeploymentHistoryEntry {
	return rollout().History(builders...).Obj().Status.History
}

func check(name string) *fixture.HealthCheckBuilder { return fixture.MakeHealthCheck(name) }

func gate(name string) *fixture.GateBuilder { return fixture.MakeGate(name, "shop") }

func release(tag string) *fixture.ReleaseBuilder { return fixture.MakeRelease(tag) }

func tags(releases []v1alpha1.VersionInfo) []string {
	var all []string
	for _, r := range releases {
		all = append(all, r.Tag)
	}
	return all
}

func wireTime(t time.Time) *metav1.Time { return &metav1.Time{Time: t} }

func to[T any](value T) *T { return &value }

// diff fails the test if got differs from want.
func diff(t *testing.T, want, got any, options ...cmp.Option) {
	t.Helper()
	if d := cmp.Diff(want, got, options...); d != "" {
		t.Errorf("unexpected (-want +got):\n%s", d)
	}
}

// outcome is the part of a decision about the promotion, without the known releases and
// the verdicts.
type outcome struct {
	Action    promotion.Action
	Release   string
	Manual    bool
	Reason    string
	Message   string
	Failed    []v1alpha1.FailedHealthCheck
	Resets    []int
	Overdue   bool
	RecheckAt time.Time
}

func outcomeOf(d promotion.Decision) outcome {
	return outcome{
		Action: d.Action, Release: d.Release.Tag, Manual: d.Manual, Reason: d.Reason, Message: d.Message,
		Failed: d.Failed, Resets: d.Resets, Overdue: d.Overdue, RecheckAt: d.RecheckAt,
	}
}

// reasons returns why each candidate is held; an eligible candidate has an empty list.
func reasons(d promotion.Decision) map[string][]string {
	all := map[string][]string{}
	for _, verdict := range d.Candidates {
		all[verdict.Release.Tag] = []string{}
		for _, hold := range verdict.Holds {
			all[verdict.Release.Tag] = append(all[verdict.Release.Tag], hold.Reason)
		}
	}
	return all
}
