// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/upstream"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// waits returns the input of a decision about 1.1.0, while 1.0.0 runs.
func waits(t *testing.T, rollout *fixture.RolloutBuilder, changes ...func(*promotion.Input)) promotion.Input {
	t.Helper()
	order, err := releases.NewOrder(releases.OrderSpec{Kind: releases.BySemver, Range: ">=0.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	in := promotion.Input{Now: fixture.Noon, Rollout: rollout.Ledger("1.0.0", "1.1.0").Obj()}
	in.Rollout.Status.ObservedGeneration = in.Rollout.Generation
	if in.Rollout.Current() == nil {
		in.Rollout.Status.History = []v1alpha1.DeploymentHistoryEntry{fixture.MakeEntry("1.0.0").Succeeded().Obj()}
	}
	latest := fixture.MakeRelease("1.1.0").Obj()
	in.Policy = releases.Policy{Name: "shop", Order: order, Latest: &latest}
	for _, change := range changes {
		change(&in)
	}
	return in
}

func gates(all ...*fixture.GateBuilder) func(*promotion.Input) {
	return func(in *promotion.Input) {
		for _, gate := range all {
			in.Gates.Gates = append(in.Gates.Gates, *gate.Obj())
		}
	}
}

func closedSchedule(in *promotion.Input) {
	in.Gates.Schedules = []promotion.Window{{Schedule: "RolloutSchedule nights", Message: "closed", Until: fixture.Noon.Add(time.Hour)}}
}

// frozen holds the Rollout as the verb freeze does.
func frozen(t *testing.T) func(*promotion.Input) {
	t.Helper()
	freeze, err := request.NewFreeze("INC-7", fixture.Noon, time.Time{}, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	return func(in *promotion.Input) {
		in.Gates.Gates = append(in.Gates.Gates, *freeze.Gate(fixture.Namespace, "shop"))
	}
}

func frozenSchedule(in *promotion.Input) {
	in.Gates.Schedules = []promotion.Window{{Schedule: "RolloutSchedule night", Message: "closed", Description: "Freeze: INC-7", ManagedBy: request.FreezeManager}}
}

// quarantined holds 1.1.0 because a user says that it is bad.
func inQuarantine(name string, enforce v1alpha1.QuarantineEnforcement) func(*promotion.Input) {
	return func(in *promotion.Input) {
		in.Policy.Image = "registry.example.com/shop"
		in.Quarantines.All = []quarantined.Quarantine{{Name: name, Spec: v1alpha1.ReleaseQuarantineSpec{
			Image: in.Policy.Image, Tags: []string{"1.1.0"}, Enforce: enforce,
		}}}
	}
}

func unhealthy(in *promotion.Input) {
	in.Health.Checks = []v1alpha1.HealthCheck{*fixture.MakeHealthCheck("web").Unhealthy().Obj()}
}

// awaits makes the Rollout wait for staging, which says something of 1.1.0.
func awaits(of environmentsv1.EnvironmentSpec, says ...environmentsv1.Release) func(*promotion.Input) {
	return func(in *promotion.Input) {
		e := &environmentsv1.Environment{Spec: of}
		e.Name = "prod"
		in.Policy.Latest.Digest = new("sha256:11")
		in.Rollout.Status.AvailableReleases[1].Digest = in.Policy.Latest.Digest
		staging := upstream.Upstream{Upstream: environmentsv1.Upstream{Environment: "staging", Type: environmentsv1.After}, Releases: says}
		in.Upstreams.Environments = []upstream.Environment{{Environment: e, Upstreams: []upstream.Upstream{staging}}}
	}
}

func says(state v1alpha1.BakeStatus) environmentsv1.Release {
	return environmentsv1.Release{Tag: "1.1.0", Digest: "sha256:11", State: state, Current: true}
}

func TestRemediesAreTheWeakestThatHelp(t *testing.T) {
	shop := func() *fixture.RolloutBuilder { return fixture.MakeRollout("shop") }
	closed, open := fixture.MakeGate("qa", "shop").Closed(), fixture.MakeGate("open", "shop")
	failed := fixture.MakeEntry("1.0.0").Failed()
	for name, tt := range map[string]struct {
		in   promotion.Input
		want []string
	}{
		"a gate": {
			waits(t, shop(), gates(open, closed)),
			[]string{"approve --gate qa --version 1.1.0: goes"},
		},
		"a gate that allows other versions": {
			waits(t, shop(), gates(fixture.MakeGate("qa", "shop").Allow("1.0.0"))),
			[]string{"approve --gate qa --version 1.1.0: goes"},
		},
		"a freeze of this Rollout": {
			waits(t, shop(), frozen(t)), []string{"unfreeze: goes"},
		},
		"a freeze of several, and a gate": {
			waits(t, shop(), gates(closed), frozenSchedule),
			[]string{
				"approve --gate qa --version 1.1.0: ScheduleClosed", "unfreeze night: SomeGatesBlocking",
				"promote --version 1.1.0 --past-gates: goes",
			},
		},
		"two gates": {
			waits(t, shop(), gates(closed, fixture.MakeGate("legal", "shop").Closed())),
			[]string{
				"approve --gate qa --version 1.1.0: SomeGatesBlocking", "approve --gate legal --version 1.1.0: SomeGatesBlocking",
				"promote --version 1.1.0 --past-gates: goes",
			},
		},
		"a gate and a schedule": {
			waits(t, shop(), gates(closed), closedSchedule),
			[]string{"approve --gate qa --version 1.1.0: ScheduleClosed", "promote --version 1.1.0 --past-gates: goes"},
		},
		"a failure": {
			waits(t, shop().History(failed)), []string{"unblock: goes"},
		},
		"a failure and a gate": {
			waits(t, shop().History(failed), gates(closed)),
			[]string{
				"approve --gate qa --version 1.1.0: PreviousBakeFailed", "unblock: SomeGatesBlocking",
				"promote --version 1.1.0 --past-gates: PreviousBakeFailed", "promote --version 1.1.0 --force -m : goes",
			},
		},
		"a quarantine: another Rollout may take the release, or this one alone": {
			waits(t, shop(), inQuarantine("ReleaseQuarantine bad", "")), []string{"lift bad: goes", "pin 1.1.0: goes"},
		},
		"a quarantine and a gate": {
			waits(t, shop(), gates(closed), inQuarantine("ReleaseQuarantine bad", "")),
			[]string{
				"approve --gate qa --version 1.1.0: Quarantined", "lift bad: SomeGatesBlocking",
				"promote --version 1.1.0 --past-gates: Quarantined", "pin 1.1.0: goes",
			},
		},
		"a quarantine that users obey, too": {
			waits(t, shop(), inQuarantine("ReleaseQuarantine bad", v1alpha1.EnforceAlways)), []string{"lift bad: goes"},
		},
		"a quarantine of another namespace": {
			waits(t, shop(), inQuarantine("ReleaseQuarantine other/bad", "")), []string{"pin 1.1.0: goes"},
		},
		"a recall": {
			waits(t, shop(), inQuarantine("ClusterReleaseQuarantine bad", v1alpha1.EnforceAlways)), nil,
		},
		"an unhealthy check": {
			waits(t, shop(), unhealthy), []string{"unblock: goes"},
		},
		"not proven": {
			waits(t, shop(), awaits(environmentsv1.EnvironmentSpec{})),
			[]string{"promote --version 1.1.0 --past-gates -m : goes"},
		},
		"failed in staging, and no bypass is allowed": {
			waits(t, shop(), awaits(environmentsv1.EnvironmentSpec{Bypass: environmentsv1.BypassDenied}, says(v1alpha1.BakeFailed))),
			[]string{"promote --version 1.1.0 --force -m : goes"},
		},
		"proven, and left to users": {
			waits(t, shop(), awaits(environmentsv1.EnvironmentSpec{Promotion: environmentsv1.PromoteManually}, says(v1alpha1.BakeSucceeded))),
			[]string{"promote --version 1.1.0: goes"},
		},
		"proven, left to users, and a schedule": {
			waits(t, shop(), closedSchedule, awaits(environmentsv1.EnvironmentSpec{Promotion: environmentsv1.PromoteManually}, says(v1alpha1.BakeSucceeded))),
			[]string{"promote --version 1.1.0: ScheduleClosed", "promote --version 1.1.0 --past-gates -m : goes"},
		},
		"not proven, and left to users": {
			waits(t, shop(), awaits(environmentsv1.EnvironmentSpec{Promotion: environmentsv1.PromoteManually})),
			[]string{"promote --version 1.1.0 --past-gates -m : goes"},
		},
		"a pin":                      {waits(t, shop().Pin("1.0.0")), []string{"unpin: goes"}},
		"a bypass for another":       {waits(t, shop().Annotate(v1alpha1.BypassGatesAnnotation, "0.9.0"), gates(closed)), []string{"approve --gate qa --version 1.1.0: goes"}},
		"an interval":                {waits(t, shop().History(fixture.MakeEntry("1.0.0").Succeeded().At(fixture.Noon)).ReleaseUpdateInterval(time.Hour)), []string{"promote --version 1.1.0 --force -m : goes"}},
		"nothing: it goes by itself": {waits(t, shop()), nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := tt.in.Rollout.DeepCopy()
			d := promotion.Decide(tt.in)
			if len(d.Candidates) == 0 {
				t.Fatalf("there is no candidate: %+v", d)
			}
			if d.Candidates[0].Eligible() {
				if tt.want != nil {
					t.Fatal("nothing holds it")
				}
				return
			}
			var got []string
			for _, remedy := range explain.Remedies(tt.in, d.Candidates[0], explain.User{}) {
				got = append(got, describe(remedy))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, tt.in.Rollout); diff != "" {
				t.Errorf("the Rollout was changed (-before +after):\n%s", diff)
			}
		})
	}
}

func TestWhatIsNotPossibleIsNoRemedy(t *testing.T) {
	in := waits(t, fixture.MakeRollout("shop"), gates(fixture.MakeGate("qa", "shop").Closed()))
	isNoGate := func(r request.Request) bool { return r.Gate == "" }
	var got []string
	for _, remedy := range explain.Remedies(in, promotion.Decide(in).Candidates[0], explain.User{Possible: isNoGate}) {
		got = append(got, describe(remedy))
	}
	if diff := cmp.Diff([]string{"promote --version 1.1.0 --past-gates: goes"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func describe(r explain.Remedy) string {
	effect := []string{"goes"}
	if !r.Promotes {
		effect = nil
		for _, hold := range r.Left {
			effect = append(effect, hold.Reason)
		}
	}
	words := append([]string{r.Request.Verb}, r.Request.Args...)
	if name := r.Request.Name(); name != "" {
		words = append(words, name)
	}
	return strings.Join(words, " ") + ": " + strings.Join(effect, ", ")
}
