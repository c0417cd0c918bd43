// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// frozen is what freeze makes, an hour before noon and for two hours.
type frozen struct {
	gate *v1alpha1.RolloutGate // of web
	own  *v1alpha1.RolloutSchedule
	all  *v1alpha1.ClusterRolloutSchedule
	// copied is the gate that shows own for shop.
	copied *v1alpha1.RolloutGate
}

func newFrozen(t *testing.T) frozen {
	t.Helper()
	f, err := request.NewFreeze("INC-4711", noon.Add(-time.Hour), noon.Add(time.Hour), time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	all := frozen{
		f.Gate(fixture.Namespace, "web"), f.Schedule(fixture.Namespace, &metav1.LabelSelector{}),
		f.ClusterSchedule(&metav1.LabelSelector{}), fixture.MakeGate("copied", "shop").Closed().Obj(),
	}
	all.own.UID, all.all.UID, all.gate.UID = "own", "all", "gate"
	all.own.Status.ObservedGeneration, all.own.Status.MatchingRollouts = 1, 2
	all.copied.OwnerReferences = []metav1.OwnerReference{{UID: "own", Kind: "RolloutSchedule", Name: all.own.Name, Controller: new(true)}}
	return all
}

func TestUnfreeze(t *testing.T) {
	const (
		endsGate = "► ends RolloutGate freeze-web, frozen until it is unfrozen: INC-4711\n"
		endsOwn  = "► ends RolloutSchedule freeze-20261121-1100, frozen until Sat 21 Nov 14:00 CET: INC-4711\n"
		endsAll  = "► ends ClusterRolloutSchedule freeze-20261121-1100, frozen until Sat 21 Nov 14:00 CET: INC-4711\n"
		shopGoes = "► shop-prod/shop: 1.0.0 → 1.1.0: the newest eligible release of ImagePolicy shop\n"
		webGoes  = "► shop-prod/web: 1.0.0 → 1.1.0: the newest eligible release of ImagePolicy web\n"
		nothing  = "► nothing goes out at once\n"
		removed  = "✔ RolloutSchedule freeze-20261121-1100: removed\n"
	)
	f := newFrozen(t)
	others := []client.Object{fixture.MakeSchedule("nights").Deny().Obj(), fixture.MakeGate("qa", "shop").Closed().Obj()}
	open := fixture.MakeSchedule("mornings").Obj()
	suspended := withCandidate("shop", old())
	suspended[0].(*v1alpha1.Rollout).Spec.Suspend = true
	for name, tt := range map[string]struct {
		objects []client.Object
		args    []string
		want    answer
		left    []string
	}{
		"asks first, and nobody can answer": {
			append(withCandidate("shop", old()), f.own, f.copied, open), []string{"--all"},
			answer{Out: endsOwn + shopGoes, Err: "✗ nothing was changed: with -y it is, without a question\n", Code: 1},
			[]string{"RolloutGate copied", "RolloutSchedule freeze-20261121-1100", "RolloutSchedule mornings"},
		},
		"does not ask with -y": {
			append(withCandidate("shop", old()), f.own, open), []string{"--all", "-y"},
			answer{Out: endsOwn + shopGoes + removed}, []string{"RolloutSchedule mornings"},
		},
		"a dry run": {
			append(withCandidate("shop", old()), f.own), []string{"--all", "--dry-run"},
			answer{Out: endsOwn + shopGoes}, []string{"RolloutSchedule freeze-20261121-1100"},
		},
		"what is removed by its name": {
			append(withCandidate("shop", old()), f.own, open), []string{"--all", "-y", "-o", "name"},
			answer{Out: "rolloutschedule.kuberik.com/freeze-20261121-1100\n", Err: endsOwn + shopGoes + removed}, []string{"RolloutSchedule mornings"},
		},
		"a dry run of the API server": {
			append(withCandidate("shop", old()), f.own), []string{"--all", "--dry-run=server"},
			answer{Out: endsOwn + shopGoes + "✔ RolloutSchedule freeze-20261121-1100: removed (dry run: nothing was stored)\n"},
			[]string{"RolloutSchedule freeze-20261121-1100"},
		},
		"others hold the release, too": {
			append(append(withCandidate("shop", old()), f.own), others...), []string{"--all"},
			answer{Out: endsOwn + "► shop-prod/shop: 1.0.0 stays; 1.1.0 is held: not passing: RolloutGate qa; " +
				"RolloutSchedule nights is closed by rule mornings until 2026-11-21T13:00:00Z\n" + nothing + removed},
			[]string{"RolloutGate qa", "RolloutSchedule nights"},
		},
		"a suspended Rollout": {
			append(suspended, f.own), []string{"--all"},
			answer{Out: endsOwn + shopGoes[:len(shopGoes)-1] + " (once the Rollout is resumed: it is suspended)\n" + nothing + removed}, nil,
		},
		"nothing waits": {
			[]client.Object{fixture.MakeRollout("shop").History(old()).Obj(), f.own}, []string{"--all"},
			answer{Out: endsOwn + nothing + removed}, nil,
		},
		"one Rollout by its name": {
			append(append(withCandidate("shop", old()), withCandidate("web", old())...), f.gate), []string{"web", "-y"},
			answer{Out: endsGate + webGoes + "✔ RolloutGate freeze-web: removed\n"}, nil,
		},
		"one freeze by its name": {
			append(withCandidate("web", old()), f.gate, f.own), []string{"freeze-20261121-1100"},
			answer{Out: endsOwn + "► shop-prod/web: 1.0.0 stays; 1.1.0 is held: not passing: RolloutGate freeze-web\n" + nothing + removed},
			[]string{"RolloutGate freeze-web"},
		},
		"the freezes of the whole cluster alone": {
			append(withCandidate("shop", old()), f.all, f.gate), []string{"--all", "-A", "-y"},
			answer{Out: endsAll + shopGoes + "✔ ClusterRolloutSchedule freeze-20261121-1100: removed\n"}, []string{"RolloutGate freeze-web"},
		},
		"nothing that freeze has made": {
			append(withCandidate("shop", old()), others...), []string{"--all"},
			answer{Out: "✔ there is no freeze in namespace shop-prod: nothing was sent\n"},
			[]string{"RolloutGate qa", "RolloutSchedule nights"},
		},
		"a gate of others": {
			append(withCandidate("shop", old()), others...), []string{"qa"},
			answer{Err: "✗ there is no freeze and no Rollout qa in namespace shop-prod; see: kubectl rollouts freeze -A\n", Code: 1},
			[]string{"RolloutGate qa", "RolloutSchedule nights"},
		},
		"a Rollout that is not frozen by its name": {
			append(withCandidate("shop", old()), others...), []string{"shop"},
			answer{Out: "✔ no freeze holds Rollout shop-prod/shop by its name: nothing was sent\n"},
			[]string{"RolloutGate qa", "RolloutSchedule nights"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			for _, o := range tt.objects {
				objects = append(objects, o.DeepCopyObject().(client.Object))
			}
			m := newInMemory(t, objects...)
			if diff := cmp.Diff(tt.want, m.run(t, append([]string{"unfreeze"}, tt.args...)...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.left, m.names(t)); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
		})
	}
}
