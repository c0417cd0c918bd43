// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

const (
	// kills is how often the controller is killed.
	kills = 40
	// rollouts is how often, at least, Deployments and StatefulSets roll out.
	rollouts = 51
)

func TestKillingTheControllerLetsNoTwoRollAndForgetsNone(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes minutes")
	}
	plane := both(controlplane.Options{}).For(t)
	installPolicy(t, plane)
	all := raise(t, plane)
	seen := newRecord(t, plane, all[0].Namespace)
	killer, err := env.NewKiller(plane, env.Random(t),
		&coordinationv1.DeploymentCoordinationList{}, &appsv1.DeploymentList{}, &corev1.PodList{})
	if err != nil {
		t.Fatal(err)
	}
	var halfway int
	killer.Look = func(ctx context.Context) (err error) {
		halfway, err = countHalfway(ctx, plane, halfway)
		return err
	}
	killed := make(chan error, 1)
	go func() { killed <- killer.Kill(t.Context(), kills) }()

	rounds := 0
	for over := false; !over || rounds*6 < rollouts; {
		select {
		case err := <-killed:
			if err != nil {
				t.Fatal(err)
			}
			over = true // one more round without a kill
		default:
		}
		rounds++
		round(all, fmt.Sprintf("1.%d.0", rounds))
	}

	o := observe(seen.Sights())
	for _, broken := range o.broken {
		t.Error(broken)
	}
	for _, f := range all {
		f.rolledOutOncePerRound(o, rounds)
	}
	t.Logf("%d rounds; each of 6 Deployments and 6 StatefulSets rolled out once in each. %d of %d kills left a Deployment "+
		"paused that the journal had given the turn", rounds, halfway, kills)
}

// countHalfway adds one if the killed controller has given a Deployment the turn and not
// resumed it.
func countHalfway(ctx context.Context, plane *env.Plane, before int) (int, error) {
	var coordinations coordinationv1.DeploymentCoordinationList
	var deployments appsv1.DeploymentList
	for _, list := range []client.ObjectList{&coordinations, &deployments} {
		if err := plane.Client().List(ctx, list); err != nil {
			return before, fmt.Errorf("look at what is left: %w", err)
		}
	}
	for _, c := range coordinations.Items {
		for i := range deployments.Items {
			if d := &deployments.Items[i]; c.Status.ActiveDeployment == key(d) && d.Spec.Paused {
				return before + 1, nil
			}
		}
	}
	return before, nil
}

// raise creates two coordinations and two rollout groups of three workloads, each with
// one of the possible settings, and waits until they are rolled out.
func raise(t *testing.T, plane *env.Plane) []*fleet {
	t.Helper()
	paused := newFleet(t, plane, func(f *scenario.Fleet) {
		f.Members, f.IdlePolicy = []string{"p-a", "p-b", "p-c"}, coordinationv1.IdlePause
	})
	resumed := paused.besides("resumed", func(f *scenario.Fleet) {
		f.Members, f.IdlePolicy, f.MinReadySeconds = []string{"r-a", "r-b", "r-c"}, coordinationv1.IdleResume, bakeSeconds
	})
	single := paused.besides("single", func(f *scenario.Fleet) { f.Zones = []string{"s-a", "s-b", "s-c"} })
	several := paused.besides("several", func(f *scenario.Fleet) {
		f.Zones, f.Replicas, f.MaxUnavailable, f.MinReadySeconds = []string{"m-a", "m-b", "m-c"}, 4, "50%", bakeSeconds
	})
	all := []*fleet{paused, resumed, single, several}
	paused.Create(paused.NamespaceObject())
	for _, f := range all {
		f.Create(f.objects("1.0.0")...)
	}
	for _, f := range all {
		f.awaitRolledOut("1.0.0")
	}
	return all
}

// round gives all workloads a version at once, and waits until it has rolled out.
func round(all []*fleet, version string) {
	for _, f := range all {
		f.give(version)
	}
	for _, f := range all {
		f.awaitRolledOut(version)
	}
}

// rolledOutOncePerRound checks that the observer saw each workload finish each version,
// that the journal began each exactly once, and that it has nothing left to do.
func (f *fleet) rolledOutOncePerRound(o *observer, rounds int) {
	f.T.Helper()
	for _, name := range slices.Concat(f.Fleet.Members, f.Fleet.Zones) {
		if o.finished[name] != rounds {
			f.T.Errorf("%s rolled out %d times in %d rounds", name, o.finished[name], rounds)
		}
	}
	for _, name := range f.Fleet.Members {
		if begun := o.begun[f.Namespace+"/"+name]; begun != rounds {
			f.T.Errorf("the journal began the roll-out of %s %d times in %d rounds", name, begun, rounds)
		}
	}
	if len(f.Fleet.Members) == 0 {
		return
	}
	for _, state := range f.coordination().Status.DeploymentStates {
		if state.HasPendingChanges || isBefore(state.LastRolloutFinished, state.LastRolloutStarted) {
			f.T.Errorf("the journal is not at rest:\n%s", f.journal())
		}
	}
}

func isBefore(a, b *metav1.Time) bool { return a == nil || b == nil || a.Before(b) }
