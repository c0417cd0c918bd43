// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"errors"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func scheme(g Gomega) *runtime.Scheme {
	scheme := runtime.NewScheme()
	g.Expect(errors.Join(clientgoscheme.AddToScheme(scheme), helmv2.AddToScheme(scheme), imagev1.AddToScheme(scheme), kustomizev1.AddToScheme(scheme),
		sourcev1.AddToScheme(scheme), generatorv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))).To(Succeed())
	return scheme
}

// readerOf returns a reader of objects in memory, with the indexes that caches have.
func readerOf(t *testing.T, objects ...client.Object) *snapshot.Snapshot {
	t.Helper()
	g := NewWithT(t)
	s, err := snapshot.New(scheme(g), objects...)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Index(t.Context(), s)).To(Succeed())
	return s
}

// shop returns what an environment consists of in which 1.0.0 runs and 1.1.0 waits.
func shop() []client.Object {
	check := fixture.MakeHealthCheck("web").Healthy().Obj()
	check.Labels = map[string]string{"app": "shop"}
	return []client.Object{
		fixture.MakeScan("shop").Found("1.0.0", "1.1.0").Obj(), fixture.MakePolicy("shop").Latest("1.1.0").Obj(),
		fixture.MakeRepository("shop").DrivenBy("shop").Tag("1.0.0").Pulled(fixture.Revision("1.0.0")).Ready().Obj(),
		check, fixture.MakeGate("qa", "shop").Closed().Obj(), fixture.MakeGate("other", "cart").Closed().Obj(),
		fixture.MakeSchedule("nights").Deny().Obj(),
	}
}

func running() *v1alpha1.Rollout {
	rollout := fixture.MakeRollout("shop").Ledger("1.0.0", "1.1.0").History(fixture.MakeEntry("1.0.0").Succeeded()).Obj()
	rollout.Spec.HealthCheckSelector = &v1alpha1.HealthCheckSelector{MatchLabels: map[string]string{"app": "shop"}}
	return rollout
}

// Objects in memory are enough for a decision: neither a cache, nor a registry, nor a
// controller that remembers its writes is needed.
func TestSnapshotOfObjectsIsDecidedLikeACluster(t *testing.T) {
	g := NewWithT(t)
	reader := readerOf(t, shop()...)
	s := Gatherer{Client: reader, Live: reader}.Gather(t.Context(), running(), fixture.Noon)
	g.Expect(s.Err).NotTo(HaveOccurred())
	g.Expect(s.Found).To(HaveLen(1))
	g.Expect(s.Targets.All).To(ConsistOf(And(HaveField("Name", "shop"), HaveField("State", v1alpha1.TargetApplied))))
	g.Expect(s.Health.Checks).To(ConsistOf(HaveField("Name", "web")))
	g.Expect(s.Gates.Gates).To(ConsistOf(HaveField("Name", "qa")))
	g.Expect(s.Gates.Schedules).To(ConsistOf(HaveField("Open", false)))

	d := promotion.Decide(s.Input)
	g.Expect(d.Action).To(Equal(promotion.Nothing))
	g.Expect(d.Candidates).To(HaveLen(1))
	var reasons []string
	for _, hold := range d.Candidates[0].Holds {
		reasons = append(reasons, hold.Reason)
	}
	g.Expect(reasons).To(ConsistOf(v1alpha1.SomeGatesBlockingReason, v1alpha1.ScheduleClosedReason))
}

// What cannot be read is a fact in the input, and says why. The rest is gathered.
func TestReadErrorIsAFactOfTheSnapshot(t *testing.T) {
	forbidden := apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("x").GroupResource(), "", nil)
	for name, tt := range map[string]struct {
		refused client.ObjectList
		problem func(Snapshot) *verdict.Problem
		want    verdict.Problem
	}{
		"gates": {
			&v1alpha1.RolloutGateList{},
			func(s Snapshot) *verdict.Problem { return s.Gates.Problem },
			verdict.Problem{Reason: v1alpha1.GateListFailedReason, Message: "gates or schedules could not be read: Forbidden"},
		},
		"schedules": {
			&v1alpha1.ClusterRolloutScheduleList{},
			func(s Snapshot) *verdict.Problem { return s.Gates.Problem },
			verdict.Problem{Reason: v1alpha1.GateListFailedReason, Message: "gates or schedules could not be read: Forbidden"},
		},
		"HealthChecks": {
			&v1alpha1.HealthCheckList{},
			func(s Snapshot) *verdict.Problem { return s.Health.Problem },
			verdict.Problem{Reason: v1alpha1.HealthCheckListFailedReason, Message: "the HealthChecks could not be read: Forbidden"},
		},
		"targets": {
			&sourcev1.OCIRepositoryList{},
			func(s Snapshot) *verdict.Problem { return s.Targets.Problem },
			verdict.Problem{Reason: v1alpha1.RolloutFailedReason, Message: "the targets could not be read: Forbidden"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			reader := readerOf(t, shop()...)
			g.Expect(reader.Fail(tt.refused, forbidden)).To(Succeed())
			s := Gatherer{Client: reader, Live: reader}.Gather(t.Context(), running(), fixture.Noon)
			g.Expect(s.Err).To(MatchError(forbidden))
			g.Expect(tt.problem(s)).To(Equal(&tt.want))
			g.Expect(s.Policy.Latest).To(HaveField("Tag", "1.1.0"))
		})
	}
}

func TestSelectorThatCannotBeUsedIsNoFailedRead(t *testing.T) {
	g := NewWithT(t)
	reader, rollout := readerOf(t, shop()...), running()
	rollout.Spec.HealthCheckSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Is"}}
	s := Gatherer{Client: reader, Live: reader}.Gather(t.Context(), rollout, fixture.Noon)
	g.Expect(s.Err).NotTo(HaveOccurred())
	g.Expect(s.Health.Problem).To(HaveField("Reason", v1alpha1.InvalidSelectorReason))
}
