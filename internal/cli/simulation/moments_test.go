// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/simulation"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// The engine is asked again at a moment only after something has changed, and time only
// goes forward, whatever happens in the simulation.
func TestEngineIsAskedAgainOnlyAfterAChange(t *testing.T) {
	for range 500 {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("with seed %d", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 0))
			asked := questions{t: t}
			result, err := simulation.RunAsking(asked.decide, anyInput(t, rng), anyAssumptions(rng))
			if err != nil {
				t.Fatal(err)
			}
			if asked.n == 0 || result.End == "" {
				t.Errorf("the engine was asked %d times, and the end is %q", asked.n, result.End)
			}
		})
	}
}

// questions compares each input of the engine with the one before.
type questions struct {
	t      *testing.T
	n      int
	before promotion.Input
}

func (q *questions) decide(in promotion.Input) promotion.Decision {
	q.t.Helper()
	switch {
	case q.n > 0 && in.Now.Before(q.before.Now):
		q.t.Errorf("asked at %s after %s", in.Now, q.before.Now)
	case q.n > 0 && reflect.DeepEqual(q.before, in):
		q.t.Errorf("asked again at %s, and nothing has changed", in.Now)
	}
	q.n++
	q.before = in
	q.before.Rollout, q.before.Health.Checks = in.Rollout.DeepCopy(), nil
	for i := range in.Health.Checks {
		q.before.Health.Checks = append(q.before.Health.Checks, *in.Health.Checks[i].DeepCopy())
	}
	q.before.Targets.All = append([]content.Target(nil), in.Targets.All...)
	return promotion.Decide(in)
}

// anyInput returns a Rollout of any kind in any state of its first promotion.
func anyInput(t *testing.T, rng *rand.Rand) promotion.Input {
	t.Helper()
	r := fixture.MakeRollout("shop")
	for _, set := range []func(){
		func() { r.BakeTime(time.Duration(rng.IntN(90)) * time.Minute) },
		func() { r.DeployTimeout(time.Duration(rng.IntN(90)) * time.Minute) },
		func() { r.ReleaseUpdateInterval(time.Duration(rng.IntN(300)) * time.Minute) },
		func() { r.Strategy(v1alpha1.ReleaseNext) },
		func() { r.SelectAllChecks() },
		func() { r.Pin("1.1.0") },
		func() { r.Annotate(v1alpha1.UnblockFailedAnnotation, "true") },
	} {
		if rng.IntN(2) == 0 {
			set()
		}
	}
	return shop(t, r, "1.1.0", func(in *promotion.Input) {
		state := []v1alpha1.BakeStatus{v1alpha1.BakeDeploying, v1alpha1.BakeInProgress, v1alpha1.BakeSucceeded, v1alpha1.BakeFailed}[rng.IntN(4)]
		since := fixture.Noon.Add(-time.Duration(rng.IntN(120)) * time.Minute)
		in.Rollout.Status.History[0] = fixture.MakeEntry("1.0.0").ID(1).At(since).State(state).Obj()
		if rng.IntN(2) == 0 {
			in.Targets.All[0].State = v1alpha1.TargetPending
		}
		if in.Rollout.Spec.HealthCheckSelector == nil {
			in.Health.Checks = nil
		}
	})
}

func anyAssumptions(rng *rand.Rand) simulation.Assumptions {
	minutes := func(most int) time.Duration { return time.Duration(rng.IntN(most)) * time.Minute }
	a := simulation.Assumptions{Applies: minutes(9), Reports: minutes(9), Until: fixture.Noon.Add(minutes(10000))}
	if rng.IntN(2) == 0 {
		a.Schedules = nightly
	}
	for range rng.IntN(20) {
		a.Events = append(a.Events, at(minutes(6000), anyChange(rng)))
	}
	return a
}

func anyChange(rng *rand.Rand) func(*promotion.Input) {
	tag := fmt.Sprintf("1.%d.0", rng.IntN(9))
	requests := []string{v1alpha1.ForceDeployAnnotation, v1alpha1.BypassGatesAnnotation, v1alpha1.RetryAnnotation}
	request := requests[rng.IntN(len(requests))]
	state := []v1alpha1.HealthStatus{v1alpha1.HealthStatusHealthy, v1alpha1.HealthStatusUnhealthy, v1alpha1.HealthStatusPending}[rng.IntN(3)]
	changes := []func(*promotion.Input){
		closed, opens, appears(tag), appears(tag),
		func(in *promotion.Input) { metav1.SetMetaDataAnnotation(&in.Rollout.ObjectMeta, request, tag) },
		func(in *promotion.Input) { in.Rollout.Spec.WantedVersion = &tag },
		func(in *promotion.Input) { in.Rollout.Spec.WantedVersion = nil },
		func(in *promotion.Input) {
			for i := range in.Health.Checks {
				in.Health.Checks[i].Status.Status = state
			}
		},
	}
	return changes[rng.IntN(len(changes))]
}

func TestTooMuchIsNotSimulated(t *testing.T) {
	var events []simulation.Event
	for i := range 20000 {
		events = append(events, at(time.Duration(i)*time.Minute, opens))
	}
	asked := 0
	result, err := simulation.RunAsking(func(in promotion.Input) promotion.Decision {
		asked++
		return promotion.Decide(in)
	}, shop(t, baked(), "1.0.0"), simulation.Assumptions{Events: events, Until: fixture.Noon.Add(year)})
	if err != nil {
		t.Fatal(err)
	}
	if result.End != simulation.OutOfSteps || asked != 10000 {
		t.Errorf("it ended %s after %d decisions", result.End, asked)
	}
}

// aYear is a release each day, which bakes for half an hour when the schedules open.
func aYear(tb testing.TB) (promotion.Input, simulation.Assumptions) {
	tb.Helper()
	a := simulation.Assumptions{Applies: applies, Reports: time.Minute, Until: fixture.Noon.Add(year)}
	a.Schedules = windows(tb, []v1alpha1.RolloutScheduleSpec{
		allow("Europe/Berlin", "22:00", "06:00"), deny("America/New_York", "23:15", "02:30", "Saturday", "Sunday"),
	})
	for day := range 366 {
		a.Events = append(a.Events, at(time.Duration(day)*24*time.Hour, appears(fmt.Sprintf("1.%d.0", day+1))))
	}
	return shop(tb, baked(), "1.0.0"), a
}

// For each release of a year the engine is asked: when it appears, when a schedule may
// open, for each of the three steps of its promotion, and at the end.
func TestYearIsSimulatedWithFewDecisions(t *testing.T) {
	in, a := aYear(t)
	asked := 0
	result, err := simulation.RunAsking(func(in promotion.Input) promotion.Decision {
		asked++
		return promotion.Decide(in)
	}, in, a)
	if err != nil {
		t.Fatal(err)
	}
	if promoted := len(result.Steps) / 3; promoted < 350 || asked > 10*promoted {
		t.Errorf("%d promotions took %d decisions, want at most 10 for each", promoted, asked)
	}
}

// BenchmarkYear must take less than a second.
func BenchmarkYear(b *testing.B) {
	in, a := aYear(b)
	for b.Loop() {
		if _, err := simulation.Run(in, a); err != nil {
			b.Fatal(err)
		}
	}
}
