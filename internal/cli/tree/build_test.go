// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestTreeShowsWhatHoldsTheNextReleaseAndFoldsTheRest(t *testing.T) {
	rollout := running()
	rollout.Status.AvailableReleases = fixture.Releases("1.0.0", "1.1.0")
	applied := []client.Object{deployment("api"), deployment("web"), configMap("settings"), secret("login")}
	objects := slices.Concat(offer("1.0.0", "1.1.0"), applied, []client.Object{
		pulled(), appliedKustomization("shop", applied...),
		fixture.MakeGate("qa", "shop").Closed().Obj(), fixture.MakeGate("a", "shop").Obj(), fixture.MakeGate("b", "shop").Obj(),
		fixture.MakeHealthCheck("smoke").Healthy().Obj(), fixture.MakeHealthCheck("web").Healthy().Obj(),
		fixture.MakeSchedule("nights").Deny().Cluster(nil),
	})
	golden(t, "held", draw(t, build(t, clusterOf(t, objects...), rollout, tree.Limits{}), tree.Folding{}))
}

// Case 25.
func TestManyHealthyObjectsAreOneLine(t *testing.T) {
	good := workloads(300)
	bad := broken("cart")
	all := append(slices.Clone(good), bad)
	elsewhere := having(fixture.MakeKustomization("edge").From("OCIRepository", "shop").Applied(fixture.Revision("1.0.0")).Ready().Obj(),
		deployment("edge-a"), deployment("edge-b"))
	elsewhere.Spec.KubeConfig = &meta.KubeConfigReference{SecretRef: &meta.SecretKeyReference{Name: "edge"}}
	objects := slices.Concat(offer("1.0.0"), all, []client.Object{
		pulled(), appliedKustomization("shop", all...), elsewhere, podOf(bad, "cart-7d4b-x", crashing),
	})
	built := build(t, clusterOf(t, objects...), running(), tree.Limits{})
	t.Run("folded", func(t *testing.T) {
		golden(t, "many", draw(t, built, tree.Folding{}))
	})
	t.Run("all", func(t *testing.T) {
		shown := 0
		built.Fold(tree.Folding{All: true}).Root.Each(func(n *tree.Node) {
			if n.Object != nil && n.Object.Kind == "Deployment" {
				shown++
			}
		})
		if want := len(all) + 2; shown != want {
			t.Errorf("%d Deployments are shown, want %d", shown, want)
		}
	})
}

// Case 26: the status says what was observed when it was written last.
func TestTargetsAreThoseOfFluxAndNotOfTheStatus(t *testing.T) {
	rollout := fixture.MakeRollout("shop").Ledger("1.0.0", "1.1.0").
		History(fixture.MakeEntry("1.1.0").Deploying(), fixture.MakeEntry("1.0.0").Succeeded()).Obj()
	rollout.Status.Targets = []v1alpha1.TargetStatus{
		{Kind: "OCIRepository", Namespace: fixture.Namespace, Name: "shop", Version: "1.1.0", State: v1alpha1.TargetPending},
		{Kind: "Kustomization", Namespace: fixture.Namespace, Name: "shop", Version: "1.0.0", State: v1alpha1.TargetApplied},
	}
	objects := append(offer("1.0.0", "1.1.0"),
		fixture.MakeRepository("shop").DrivenBy("shop").Tag("1.1.0").Pulled(fixture.Revision("1.1.0")).Ready().Obj(),
		fixture.MakeKustomization("shop").Applied(fixture.Revision("1.0.0")).Observed(1).
			Condition(meta.ReadyCondition, metav1.ConditionUnknown, 1, "Reconciliation in progress").Obj())
	golden(t, "deploying", draw(t, build(t, clusterOf(t, objects...), rollout, tree.Limits{}), tree.Folding{}))
}

func TestNoReleaseAndNoTargets(t *testing.T) {
	golden(t, "nothing", draw(t, build(t, clusterOf(t), fixture.MakeRollout("shop").Obj(), tree.Limits{}), tree.Folding{}))
}

func TestHeadSaysWhatRunsAndWhatIsNext(t *testing.T) {
	qa := fixture.MakeGate("qa", "shop").Closed().Obj()
	pinned := fixture.MakeRollout("shop").Ledger("1.0.0", "1.1.0").Pin("1.1.0").
		History(fixture.MakeEntry("1.0.0").Failed().Because("HealthCheck smoke: 502")).Obj()
	suspended := fixture.MakeRollout("shop").Obj()
	suspended.Spec.Suspend = true
	for name, tt := range map[string]struct {
		rollout *v1alpha1.Rollout
		objects []client.Object
		want    tree.Head
	}{
		"held": {
			fixture.MakeRollout("shop").Ledger("1.0.0", "1.1.0").History(
				fixture.MakeEntry("1.0.0").ID(41).Succeeded().By(v1alpha1.TriggeredByUser, "alice").Message("spring prices")).Obj(),
			append(offer("1.0.0", "1.1.0"), qa),
			tree.Head{
				Version: "1.0.0", ID: ptr.To(int64(41)), State: "Succeeded", Since: since(time.Hour), By: "alice", Message: "spring prices",
				Next: &tree.Next{Version: "1.1.0", Holds: []tree.Hold{{Reason: "SomeGatesBlocking", Message: "not passing: RolloutGate qa"}}},
			},
		},
		"held until the schedule opens": {
			fixture.MakeRollout("shop").Ledger("1.0.0", "1.1.0").History(fixture.MakeEntry("1.0.0").ID(1).Succeeded()).Obj(),
			append(offer("1.0.0", "1.1.0"), fixture.MakeSchedule("nights").Deny().Obj()),
			tree.Head{
				Version: "1.0.0", ID: ptr.To(int64(1)), State: "Succeeded", Since: since(time.Hour),
				Next: &tree.Next{Version: "1.1.0", Holds: []tree.Hold{{
					Reason: "ScheduleClosed", Message: "RolloutSchedule nights is closed by rule mornings until 2026-03-02T13:00:00Z", Until: since(-time.Hour),
				}}},
			},
		},
		"the next in order, and not the newest": {
			fixture.MakeRollout("shop").Ledger("1.0.0", "1.1.0", "1.2.0").Strategy(v1alpha1.ReleaseNext).
				History(fixture.MakeEntry("1.0.0").ID(1).Succeeded()).Obj(),
			append(offer("1.0.0", "1.1.0", "1.2.0"), qa),
			tree.Head{
				Version: "1.0.0", ID: ptr.To(int64(1)), State: "Succeeded", Since: since(time.Hour),
				Next: &tree.Next{Version: "1.1.0", Holds: []tree.Hold{{Reason: "SomeGatesBlocking", Message: "not passing: RolloutGate qa"}}},
			},
		},
		"a user has chosen": {
			pinned, offer("1.0.0", "1.1.0"),
			tree.Head{
				Version: "1.0.0", ID: ptr.To(int64(1)), State: "Failed", StateMessage: "HealthCheck smoke: 502", Since: since(time.Hour),
				Next: &tree.Next{Version: "1.1.0", Promotes: true, Message: "pinned manually in spec.wantedVersion"},
			},
		},
		"suspended before the first release": {suspended, offer("1.0.0"), tree.Head{Suspended: true, Problems: []explain.Problem{{Reason: "Suspended", Message: "the Rollout is suspended: nothing happens until it is resumed"}}, Next: &tree.Next{
			Version: "1.0.0", Promotes: true, Message: "the first release of this environment, from ImagePolicy shop",
		}}},
		"the ImageRepository is suspended": {
			fixture.MakeRollout("shop").Ledger("1.0.0").History(fixture.MakeEntry("1.0.0").ID(1).Succeeded()).Obj(),
			[]client.Object{fixture.MakePolicy("shop").Latest("1.0.0").Obj(), fixture.MakeScan("shop").Suspended().Found("1.0.0").Obj()},
			tree.Head{
				Version: "1.0.0", ID: ptr.To(int64(1)), State: "Succeeded", Since: since(time.Hour),
				Problems: []explain.Problem{{Reason: "Suspended", Message: "ImageRepository shop is suspended: new releases are not seen; resume it"}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, build(t, clusterOf(t, tt.objects...), tt.rollout, tree.Limits{}).Head); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func since(d time.Duration) *metav1.Time {
	at := ago(d)
	return &at
}

func TestGroupsTakeTheSignThatMattersMost(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "", nil)
	for name, tt := range map[string]struct {
		objects []client.Object
		failed  client.ObjectList
		group   string
		want    []string
	}{
		"a gate that does not allow the next release": {
			objects: []client.Object{fixture.MakeGate("qa", "shop").Allow("1.0.5").Obj()}, group: "Gates",
			want: []string{"Gates Failed 0 of 1 are well", "RolloutGate/qa Failed lets 1 version through"},
		},
		"gates that cannot be read": {
			failed: &v1alpha1.RolloutGateList{}, group: "Gates",
			want: []string{"Gates Unknown 0 of 1 are well", "GateListFailed Unknown gates or schedules could not be read: Forbidden"},
		},
		"a schedule that cannot be evaluated": {
			objects: []client.Object{fixture.MakeSchedule("nights").Zone("Mars/Base").Obj()}, group: "Schedules",
			want: []string{"Schedules Failed 0 of 1 are well",
				`RolloutSchedule/nights Failed RolloutSchedule nights cannot be evaluated: spec.timezone "Mars/Base" is not a zone of the IANA database, such as Europe/Berlin`},
		},
		"HealthChecks in three states": {
			objects: []client.Object{
				fixture.MakeHealthCheck("a").Healthy().Message("3 of 3").Obj(), fixture.MakeHealthCheck("b").Message("waits for pods").Obj(),
				fixture.MakeHealthCheck("c").Unhealthy().Message("502").Obj(),
			},
			group: "Health",
			want:  []string{"Health Failed 1 of 3 are well", "HealthCheck/a Well ", "HealthCheck/b Waits waits for pods", "HealthCheck/c Failed 502"},
		},
		"targets that cannot be read": {
			failed: &sourcev1.OCIRepositoryList{}, group: "Targets",
			want: []string{"Targets Unknown ", "RolloutFailed Unknown the targets could not be read: Forbidden"},
		},
		"a target that is suspended": {
			objects: []client.Object{fixture.MakeRepository("shop").DrivenBy("shop").Tag("1.0.0").Suspended().Obj()}, group: "Targets",
			want: []string{"Targets Waits 0 of 1 pulled 1.0.0", "OCIRepository/shop Suspended is suspended: resume it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rollout := running()
			rollout.Status.AvailableReleases = fixture.Releases("1.0.0", "1.1.0")
			cluster := clusterOf(t, append(offer("1.0.0", "1.1.0"), tt.objects...)...)
			if tt.failed != nil {
				if err := cluster.Fail(tt.failed, forbidden); err != nil {
					t.Fatal(err)
				}
			}
			var got []string
			for _, group := range build(t, cluster, rollout, tree.Limits{}).Root.Children {
				if group.Name == tt.group {
					got = append(got, fmt.Sprintf("%s %s %s", group.Name, group.Sign, group.Text))
					for _, n := range group.Children {
						got = append(got, fmt.Sprintf("%s %s %s", nameOf(n), n.Sign, n.Text))
					}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func nameOf(n *tree.Node) string {
	if n.Object == nil {
		return n.Name
	}
	return n.Object.String()
}
