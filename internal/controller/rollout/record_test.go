// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/recheck"
	"github.com/fluxrollouts/rollout-controller/internal/write"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestPromotionIsRecordedBeforeAnyTargetIsTouched(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	var seen []map[string]string
	var recorded [][]promoted
	s.Wire.Fail = func(int, string, client.Object) fixture.Fault {
		seen = append(seen, s.carried("shop"))
		recorded = append(recorded, s.history("shop"))
		return fixture.Fault{}
	}
	s.rest("shop")

	s.Expect(s.Wire.Writes()).To(Equal([]string{
		"patch Rollout/status shop", "patch Kustomization shop", "patch OCIRepository shop",
	}))
	s.Expect(seen).To(Equal([]map[string]string{
		{"tag": "0.0.1", "TIER": "gold"},
		{"tag": "0.0.1", "TIER": "gold"},
		{"tag": "0.0.1", "TIER": "gold", "VERSION": "1.0.0"},
	}))
	entry := []promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeDeploying}}
	s.Expect(recorded).To(Equal([][]promoted{nil, entry, entry}))
	s.Expect(s.carried("shop")).To(Equal(map[string]string{"tag": "1.0.0", "TIER": "gold", "VERSION": "1.0.0"}))
}

func TestConflictOnTheRecordTouchesNoTargetAndLosesNothing(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	gr := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "rollouts"}
	s.Wire.Fail = func(n int, _ string, _ client.Object) fixture.Fault {
		if n == 1 {
			return fixture.Fault{Err: apierrors.NewConflict(gr, "shop", nil)}
		}
		return fixture.Fault{}
	}
	result := s.reconcile("shop")

	s.Expect(result.RequeueAfter).To(Equal(recheck.AfterConflict))
	s.Expect(s.Wire.Writes()).To(Equal([]string{"patch Rollout/status shop"}))
	s.Expect(s.Events.Take()).To(BeEmpty())
	s.deploy("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
}

func TestRealConflictIsFoundByTheLockOfTheRecord(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.Wire.Fail = func(n int, _ string, _ client.Object) fixture.Fault {
		if n == 1 { // another client is faster
			s.Change(fixture.MakeRollout("shop").Obj(), func(o client.Object) { o.SetLabels(map[string]string{"a": "b"}) })
		}
		return fixture.Fault{}
	}
	s.reconcile("shop")

	s.Expect(s.Wire.Writes()).To(Equal([]string{"patch Rollout/status shop"}))
	s.Expect(s.carried("shop")).To(Equal(map[string]string{"tag": "0.0.1", "TIER": "gold"}))
	s.Expect(s.history("shop")).To(BeEmpty())
	s.deploy("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded}}))
}

// TestPatchOfTheStatusIsTheClients covers every field of the status, including future
// ones.
func TestPatchOfTheStatusIsTheClients(t *testing.T) {
	one, other := filled(1), filled(2)
	some := *one.DeepCopy()
	some.Unlisted.Gates, some.Conditions, some.Title = 0, some.Conditions[:0], nil
	for name, tt := range map[string]struct{ before, after v1alpha1.RolloutStatus }{
		"first":         {v1alpha1.RolloutStatus{}, one},
		"gone":          {one, v1alpha1.RolloutStatus{}},
		"all different": {one, other},
		"some gone":     {one, some},
		"some come":     {some, one},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before := &v1alpha1.Rollout{ObjectMeta: metav1.ObjectMeta{Name: "shop", ResourceVersion: "7"}, Status: tt.before}
			after := before.DeepCopy()
			after.Status = tt.after
			want, err := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}).Data(after)
			g.Expect(err).NotTo(HaveOccurred())

			patch, err := write.StatusPatch(before.ResourceVersion, before.Status, tt.after)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(patch.Type()).To(Equal(types.MergePatchType))
			g.Expect(patch.Data(nil)).To(MatchJSON(want))
		})
	}
}

// filled returns a status with every field set, differently for every seed.
func filled(seed int64) v1alpha1.RolloutStatus {
	var status v1alpha1.RolloutStatus
	fuzzer := randfill.NewWithSeed(seed).NilChance(0).NumElements(2, 2).Funcs(func(at *metav1.Time, c randfill.Continue) {
		*at = metav1.Unix(c.Int63n(1<<31), 0)
	})
	fuzzer.Fill(&status)
	return status
}

func TestWritesOfAPromotion(t *testing.T) {
	t.Parallel()
	perPromotion := []string{
		"patch Rollout/status shop", "patch Kustomization shop", "patch OCIRepository shop", "patch Rollout/status shop",
	}
	for name, tt := range map[string]struct {
		rollout *fixture.RolloutBuilder
		more    []client.Object
		want    []string
	}{
		"a promotion writes the status twice and each target once": {
			rollout: fixture.MakeRollout("shop"),
			want:    perPromotion,
		},
		"a bake writes the status a third time": {
			rollout: fixture.MakeRollout("shop").BakeTime(10 * time.Minute),
			want:    append(append([]string{}, perPromotion...), "patch Rollout/status shop"),
		},
		"a HealthCheck is reset once": {
			rollout: fixture.MakeRollout("shop").BakeTime(10 * time.Minute).SelectAllChecks(),
			more:    []client.Object{fixture.MakeHealthCheck("web").Healthy().Obj()},
			want: []string{
				"patch Rollout/status shop", "patch Kustomization shop", "patch OCIRepository shop",
				"patch HealthCheck/status web", "patch HealthCheck web",
				"patch Rollout/status shop", "patch Rollout/status shop",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopWith(tt.rollout, "1.0.0", tt.more...)...)
			s.deployAndBake("shop")
			s.release("shop", "1.1.0")
			s.Wire.Forget()
			s.deployAndBake("shop")
			s.Expect(s.Wire.Writes()).To(Equal(tt.want))
			s.Expect(s.history("shop")).To(Equal([]promoted{
				{ID: 2, Tag: "1.1.0", State: v1alpha1.BakeSucceeded},
				{ID: 1, Tag: "1.0.0", State: v1alpha1.BakeSucceeded},
			}))
		})
	}
}

// deployAndBake runs until the end of a ten-minute bake, if there is one.
func (s *testEnv) deployAndBake(name string) {
	s.deploy(name)
	s.Pass(10 * time.Minute)
	s.rest(name)
}

func TestTargetsThatAreAppliedOneByOneAreNoChangeByThemselves(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.rest("shop")
	s.Wire.Forget()
	s.fluxPulls()
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(BeEmpty())
}

func TestNothingIsWrittenOrSentAtRest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		rollout *fixture.RolloutBuilder
		more    []client.Object
		reach   func(*testEnv)
	}{
		"before the first release": {rollout: fixture.MakeRollout("shop"), reach: func(s *testEnv) { s.withdraw() }},
		"while Flux applies":       {rollout: fixture.MakeRollout("shop"), reach: func(*testEnv) {}},
		"during a bake":            {rollout: fixture.MakeRollout("shop").BakeTime(time.Hour), reach: func(s *testEnv) { s.deploy("shop") }},
		"after a success":          {rollout: fixture.MakeRollout("shop"), reach: func(s *testEnv) { s.deploy("shop") }},
		"while a check is awaited": {rollout: fixture.MakeRollout("shop").SelectAllChecks(), more: []client.Object{fixture.MakeHealthCheck("web").Obj()}, reach: func(s *testEnv) { s.rest("shop"); s.fluxApplies(); s.rest("shop"); s.Pass(10 * time.Second) }},
		"after a failure":          {rollout: fixture.MakeRollout("shop").DeployTimeout(time.Minute), reach: func(s *testEnv) { s.rest("shop"); s.Pass(time.Hour) }},
		"while a gate is closed": {rollout: fixture.MakeRollout("shop"), reach: func(s *testEnv) {
			s.deploy("shop")
			s.Add(fixture.MakeGate("hold", "shop").Closed().Obj())
			s.release("shop", "2.0.0")
		}},
		"while a target is refused": {rollout: fixture.MakeRollout("shop"), reach: func(s *testEnv) { s.Add(fixture.MakeRepository("other").DrivenBy("shop").Semver("*").Obj()) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, shopWith(tt.rollout, "1.0.0", tt.more...)...)
			tt.reach(s)
			s.rest("shop")
			s.Wire.Forget()
			s.Events.Take()
			for range 20 {
				s.reconcile("shop")
				s.Pass(time.Second)
			}
			s.Expect(s.Wire.Writes()).To(BeEmpty())
			s.Expect(s.Events.Take()).To(BeEmpty())
		})
	}
}

// withdraw makes the ImagePolicy name no release.
func (s *testEnv) withdraw() {
	s.ChangeStatus(fixture.MakePolicy("shop").Obj(), func(o client.Object) { forgetLatest(o) })
}

func TestCheckThatKeepsAPromotionWaitingIsReportedOnce(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop").SelectAllChecks(), "1.0.0", fixture.MakeHealthCheck("web").Obj())...)
	s.rest("shop")
	s.fluxApplies()
	s.rest("shop")
	s.Wire.Forget()
	result := s.reconcile("shop")
	s.Expect(result.RequeueAfter).To(Equal(10 * time.Second))
	s.Pass(result.RequeueAfter)
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(Equal([]string{"patch Rollout/status shop"}))
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition)).To(Equal(condition{
		metav1.ConditionTrue, v1alpha1.RolloutSucceededReason,
		"1.0.0: applied; waiting for HealthCheck " + s.Namespace + "/web"}))
}
