// SPDX-License-Identifier: Apache-2.0

// Package adversary disturbs releases at random, by all that users and other controllers
// may do to the objects that the controller reads and writes.
package adversary

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/faults/observer"
	"github.com/fluxrollouts/rollout-controller/test/faults/report"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

const (
	// disturbances is their number in all applications together.
	disturbances = 75
	// between is the longest time between two of them.
	between = 700 * time.Millisecond
	// writesEach is how many writes of the controller a disturbance may cause: a
	// promotion with a bake, to two targets, needs six.
	writesEach = 6
)

func TestNewestReleaseIsOutInTheEndWhateverIsDoneToItsObjects(t *testing.T) {
	reported := report.Begin(t, "an adversary reverts targets, flaps health, re-tags releases, moves the policy back, and deletes and recreates targets, HealthChecks, gates, policies and annotations, at random",
		"no promise is broken meanwhile; when it stops, the newest release gets out everywhere and nothing is stuck; the writes are bounded by the disturbances")
	plane := env.StartFor(t, controlplane.Options{Flux: true, ImageScanner: true}, env.AsShipped...)
	random := env.Random(t)
	victims := raise(t, plane, random)
	done := map[string]int{}
	for n := range disturbances {
		v, possible := victims[random.IntN(len(victims))], moves
		if n < disturbances/3 {
			possible = slices.Concat(moves, contests, contests)
		}
		m := possible[random.IntN(len(possible))]
		m.do(v)
		done[m.name]++
		if random.IntN(2) == 0 {
			v.saysOf(v1alpha1.HealthStatusHealthy) // otherwise a bake would rarely begin
		}
		time.Sleep(time.Duration(random.Int64N(int64(between))))
	}
	t.Logf("what was done: %v", done)

	var namespaces []string
	for _, v := range victims {
		v.calmDown()
		namespaces = append(namespaces, v.Namespace)
	}
	for _, v := range victims {
		v.getsOut()
		v.Agrees()
	}
	found := observer.Replay(t, plane.ControlPlane, namespaces...)
	writes := controllerWrites(t, plane)
	if most := writesEach * disturbances; writes > most {
		t.Errorf("the controller wrote %d times in %d disturbances, want at most %d", writes, disturbances, most)
	}
	victims[0].Stays("as it is", func(*v1alpha1.Rollout) bool { return controllerWrites(t, plane) == writes })
	reported.Saw(disturbances, "%d promotions of %d applications; %d states broke no promise; the newest release was applied everywhere in the end; the controller wrote %.1f times for each disturbance, and then no more",
		found.Promotions, len(victims), found.States, float64(writes)/disturbances)
}

// raise creates applications, each with a HealthCheck whose status the test writes.
func raise(t *testing.T, plane *env.Plane, random *rand.Rand) []*victim {
	t.Helper()
	baked := scenario.App{Name: "shop"}.Baked(time.Second, time.Hour)
	checked := func(spec *v1alpha1.RolloutSpec) { baked(spec); spec.BakeTime = nil }
	var all []*victim
	for _, options := range [][]func(*v1alpha1.RolloutSpec){{baked}, {checked}, nil} {
		v := &victim{Application: env.NewApplication(t, plane, options...), random: random}
		check, class := v.HealthCheck(), "example"
		v.Change(check, func() { check.Spec.Class, check.Annotations = &class, nil })
		v.release()
		all = append(all, v)
	}
	return all
}

// controllerWrites counts the changes that the controller has made so far, without events
// and its Lease.
func controllerWrites(t *testing.T, plane *env.Plane) int {
	t.Helper()
	audited, err := plane.Audited()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, request := range audited {
		incidental := request.Resource == "/events" || request.Resource == "coordination.k8s.io/leases"
		if request.User == scenario.User(scenario.Account) && request.IsWrite() && !incidental {
			n++
		}
	}
	return n
}

// victim is an application that is disturbed.
type victim struct {
	*env.Application
	random   *rand.Rand
	released int
}

func (v *victim) version(n int) string { return fmt.Sprintf("1.%d.0", n) }

// release publishes the next version.
func (v *victim) release() {
	v.T.Helper()
	v.Release(v.version(v.released))
	v.released++
}

// any returns one of the versions that were released.
func (v *victim) any() string { return v.version(v.random.IntN(v.released)) }

// calmDown removes everything that blocks releases: gates, odd requests, an old failure.
func (v *victim) calmDown() {
	v.T.Helper()
	v.openGates()
	rollout := v.Rollout()
	v.Change(rollout, func() { rollout.Annotations = map[string]string{v1alpha1.UnblockFailedAnnotation: "true"} })
	v.saysOf(v1alpha1.HealthStatusHealthy)
	v.release()
}

// getsOut waits until the newest release has succeeded. Meanwhile it sets the HealthCheck
// to Healthy after each reset. A tag that was pushed again before Flux pulled it does not
// prove the release that was promoted. A user must then choose another one.
func (v *victim) getsOut() {
	v.T.Helper()
	newest := v.version(v.released - 1)
	v.Await("the newest release, "+newest, func(r *v1alpha1.Rollout) bool {
		v.saysOf(v1alpha1.HealthStatusHealthy)
		if strings.Contains(env.Condition(r, v1alpha1.TargetsAppliedCondition), v1alpha1.DigestMismatchReason) {
			v.Ask(v1alpha1.ForceDeployAnnotation, newest)
		}
		current := r.Current()
		return current != nil && current.Version.Tag == newest && current.State() == v1alpha1.BakeSucceeded
	})
}
