// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

const (
	userAppliesKeys = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
spec: {postBuild: {substitute: {TIER: gold, REGION: eu}}}
`
	userChangesKeys = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
spec: {postBuild: {substitute: {TIER: silver, REGION: us}}}
`
	// upstreamAppliesTag is what upstream applies: the whole reference.
	upstreamAppliesTag = `
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
spec: {ref: {tag: 1.14.0, semverFilter: ".*"}}
`
	// upstreamAppliesMap is what upstream applies: the whole map.
	upstreamAppliesMap = `
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
spec: {postBuild: {substitute: {VERSION: 1.14.0, CART: 2.0.0, TIER: gold, REGION: eu}}}
`
)

// openAfterUpstream opens a namespace that upstream's controller has just left: the
// Rollout shop at 1.14.0, a closed gate, and targets whose fields upstream applied under
// our field manager. CART belongs to another Rollout.
func openAfterUpstream(t *testing.T, rollout *fixture.RolloutBuilder, edit func(status map[string]any)) *testEnv {
	t.Helper()
	s := open(t,
		fixture.MakeScan("shop").Found("1.13.0", "1.14.0").Obj(),
		fixture.MakePolicy("shop").Latest("1.14.0").Obj(),
		fixture.MakeRepository("shop").DrivenBy("shop").Obj(),
		fixture.MakeKustomization("shop").DrivenBy("shop", "VERSION").DrivenBy("cart", "CART").Obj(),
		fixture.MakeGate("approval", "shop").Allow().Obj(),
		rollout.Obj(),
	)
	s.Expect(s.appliesUnforced("somebody", userAppliesKeys)).To(Succeed())
	s.appliesAs("rollout-controller", upstreamAppliesTag, nil)
	s.appliesAs("rollout-controller", upstreamAppliesMap, nil)
	s.fluxApplies()
	if edit != nil {
		s.writeUpstreamStatus(edit)
	}
	return s
}

// writeUpstreamStatus updates the whole status, as upstream does.
func (s *testEnv) writeUpstreamStatus(edit func(status map[string]any)) {
	text, err := os.ReadFile(filepath.Join("testdata", "upstream-status.yaml"))
	s.Expect(err).NotTo(HaveOccurred())
	status := map[string]any{}
	s.Expect(yaml.UnmarshalStrict(text, &status)).To(Succeed())
	edit(status)
	rollout := s.asSent("shop")
	rollout.Object["status"] = status
	s.Expect(s.Status().Update(s.Ctx, rollout, client.FieldOwner("manager"))).To(Succeed())
}

// asSent returns a Rollout as the API server sends it, without a Go type.
func (s *testEnv) asSent(name string) *unstructured.Unstructured {
	rollout := &unstructured.Unstructured{}
	rollout.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.RolloutKind))
	s.Expect(s.Get(s.Ctx, s.Key(name), rollout)).To(Succeed())
	return rollout
}

func (s *testEnv) statusField(name, field string) any {
	value, _, err := unstructured.NestedFieldNoCopy(s.asSent(name).Object, "status", field)
	s.Expect(err).NotTo(HaveOccurred())
	return value
}

func (s *testEnv) shopTargets() (*sourcev1.OCIRepository, *kustomizev1.Kustomization) {
	repository, kustomization := &sourcev1.OCIRepository{}, &kustomizev1.Kustomization{}
	s.Expect(s.Get(s.Ctx, s.Key("shop"), repository)).To(Succeed())
	s.Expect(s.Get(s.Ctx, s.Key("shop"), kustomization)).To(Succeed())
	return repository, kustomization
}

func asUpstreamLeftIt(map[string]any) {}

func TestRolloutOfUpstreamIsTakenOverAsItIs(t *testing.T) {
	s := openAfterUpstream(t, fixture.MakeRollout("shop").BakeTime(10*time.Minute), asUpstreamLeftIt)
	before := s.asSent("shop")
	repository, kustomization := s.shopTargets()
	s.rest("shop")

	for _, kept := range []string{"history", "availableReleases", "gates", "artifactType", "source", "title", "description"} {
		want, _, _ := unstructured.NestedFieldNoCopy(before.Object, "status", kept)
		s.Expect(want).NotTo(BeNil())
		if kept == "gates" { // our text
			want.([]any)[0].(map[string]any)["message"] = s.rollout("shop").Status.Gates[0].Message
		}
		s.Expect(s.statusField("shop", kept)).To(Equal(want), kept)
	}
	s.Expect(s.asSent("shop").Object["spec"]).To(Equal(before.Object["spec"]))
	s.Expect(s.asSent("shop").GetAnnotations()).To(Equal(before.GetAnnotations()))
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition).Reason).To(Equal(v1alpha1.BakeTimePassedReason))
	s.Expect(s.condition("shop", v1alpha1.TargetsAppliedCondition).Reason).To(Equal(v1alpha1.TargetsAppliedReason))
	s.Expect(s.Wire.Writes()).To(Equal([]string{
		"patch Rollout/status shop", "patch Kustomization shop", "patch OCIRepository shop"}))
	s.Expect(s.Events.Take()).To(BeEmpty())

	repositoryNow, kustomizationNow := s.shopTargets()
	s.Expect(repositoryNow.Spec).To(Equal(repository.Spec))
	s.Expect(kustomizationNow.Spec).To(Equal(kustomization.Spec))
	s.Expect(repositoryNow.Generation).To(Equal(repository.Generation))
	s.Expect(kustomizationNow.Generation).To(Equal(kustomization.Generation))
}

func TestIdsOfUpstreamGoOn(t *testing.T) {
	s := openAfterUpstream(t, fixture.MakeRollout("shop").BakeTime(10*time.Minute), asUpstreamLeftIt)
	s.rest("shop")
	s.Remove(&v1alpha1.RolloutGate{}, "approval")
	s.Change(fixture.MakePolicy("shop").Obj(), func(o client.Object) {
		o.(*imagev1.ImagePolicy).Spec.Policy.SemVer.Range = ">=1.0.0"
	})
	s.release("shop", "1.15.0")
	s.deploy("shop")
	s.Pass(10 * time.Minute)
	s.deploy("shop")
	s.Expect(s.history("shop")[:3]).To(Equal([]promoted{
		{ID: 15, Tag: "1.15.0", State: v1alpha1.BakeSucceeded},
		{ID: 14, Tag: "1.14.0", State: v1alpha1.BakeSucceeded},
		{ID: 13, Tag: "1.13.0", State: v1alpha1.BakeFailed},
	}))
	s.Expect(s.carried("shop")).To(Equal(map[string]string{
		"tag": "1.15.0", "VERSION": "1.15.0", "CART": "2.0.0", "TIER": "gold", "REGION": "eu"}))
}

func TestFieldsThatUpstreamOwnedAreRelinquishedOnce(t *testing.T) {
	s := openAfterUpstream(t, fixture.MakeRollout("shop"), asUpstreamLeftIt)
	s.Expect(apierrors.IsConflict(s.appliesUnforced("somebody", userChangesKeys))).To(BeTrue(), "upstream owns the keys of others")
	s.rest("shop")

	repository, kustomization := s.shopTargets()
	s.Expect(ownedFields(repository)).To(ConsistOf("spec.ref.tag"))
	s.Expect(ownedFields(kustomization)).To(ConsistOf("spec.postBuild.substitute.VERSION", "spec.postBuild.substitute.CART"))
	s.Expect(s.carried("shop")).To(Equal(map[string]string{
		"tag": "1.14.0", "VERSION": "1.14.0", "CART": "2.0.0", "TIER": "gold", "REGION": "eu"}))
	s.Expect(repository.Spec.Reference.SemverFilter).To(Equal(".*"))

	s.Wire.Forget()
	s.Expect(s.appliesUnforced("somebody", userChangesKeys)).To(Succeed())
	s.rest("shop")
	s.Expect(s.carried("shop")["TIER"]).To(Equal("silver"))
	s.Expect(s.Wire.Writes()).To(BeEmpty())
}

func TestKeyWhoseAnnotationIsRemovedIsRelinquishedAsItIs(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0")...)
	s.Change(&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, annotate("MORE", "shop"))
	s.deploy("shop")
	_, kustomization := s.shopTargets()
	s.Expect(ownedFields(kustomization)).To(ConsistOf(requestField, promotionField("shop"), "spec.postBuild.substitute.VERSION", "spec.postBuild.substitute.MORE"))

	s.Change(kustomization, annotate("MORE", ""))
	_, before := s.shopTargets()
	s.deploy("shop")
	_, kustomization = s.shopTargets()
	s.Expect(ownedFields(kustomization)).To(ConsistOf(requestField, promotionField("shop"), "spec.postBuild.substitute.VERSION"))
	s.Expect(kustomization.Spec).To(Equal(before.Spec), "nothing is deleted")
	s.Expect(kustomization.Generation).To(Equal(before.Generation))

	s.release("shop", "1.1.0")
	s.deploy("shop")
	s.Expect(s.carried("shop")).To(Equal(map[string]string{
		"tag": "1.1.0", "VERSION": "1.1.0", "MORE": "1.0.0", "TIER": "gold"}))
}

func TestKeyThatChangesItsRolloutFollowsTheOtherOne(t *testing.T) {
	s := open(t, shopWith(fixture.MakeRollout("shop"), "1.0.0",
		fixture.MakeScan("cart").Obj(), fixture.MakePolicy("cart").Latest("2.0.0").Obj(), fixture.MakeRollout("cart").Obj())...)
	s.deploy("shop")
	s.deploy("cart")
	s.Change(&kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, annotate("VERSION", "cart"))
	s.deploy("shop")
	s.deploy("cart")
	s.Expect(s.carried("shop")["VERSION"]).To(Equal("2.0.0"))
	_, kustomization := s.shopTargets()
	s.Expect(ownedFields(kustomization)).To(ConsistOf(requestField, promotionField("cart"), "spec.postBuild.substitute.VERSION"))
}

// annotate sets from which Rollout a variable is taken; empty removes it.
func annotate(variable, rollout string) func(client.Object) {
	return func(o client.Object) {
		annotations := o.GetAnnotations()
		key := v1alpha1.SubstituteAnnotationPrefix + variable + v1alpha1.SubstituteAnnotationSuffix
		if annotations[key] = rollout; rollout == "" {
			delete(annotations, key)
		}
		o.SetAnnotations(annotations)
	}
}

// inProgress makes upstream leave in the middle of a bake that began at noon.
func inProgress(status map[string]any) {
	entry := status["history"].([]any)[0].(map[string]any)
	delete(entry, "bakeEndTime")
	delete(entry, "bakeStatusMessage")
	entry["bakeStatus"] = "InProgress"
	entry["timestamp"] = fixture.Noon.Add(-time.Minute).Format(time.RFC3339)
	entry["bakeStartTime"] = fixture.Noon.Format(time.RFC3339)
}

func TestBakeThatUpstreamBeganGoesOn(t *testing.T) {
	t.Parallel()
	baked := func() *fixture.RolloutBuilder {
		return fixture.MakeRollout("shop").BakeTime(10 * time.Minute).SelectAllChecks()
	}
	t.Run("and succeeds only on health", func(t *testing.T) {
		s := openAfterUpstream(t, baked(), inProgress)
		s.Add(fixture.MakeHealthCheck("shop").Healthy().Obj()) // reported before the takeover
		s.Pass(4 * time.Minute)
		s.rest("shop")
		s.Pass(6 * time.Minute)
		s.rest("shop")
		s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 14, Tag: "1.14.0", State: v1alpha1.BakeInProgress}))
		s.Expect(s.rollout("shop").Status.History[0].BakeStartTime.Time).To(BeTemporally("==", fixture.Noon))

		s.checksSay(v1alpha1.HealthStatusHealthy)
		s.rest("shop")
		s.Pass(6 * time.Minute) // the bake time stood still for as long
		s.rest("shop")
		s.Expect(s.history("shop")).To(HaveLen(10))
		s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 14, Tag: "1.14.0", State: v1alpha1.BakeSucceeded}))
	})
	t.Run("and fails with a HealthCheck", func(t *testing.T) {
		s := openAfterUpstream(t, baked(), inProgress)
		s.Add(fixture.MakeHealthCheck("shop").Healthy().Obj())
		s.rest("shop")
		s.checkFails("shop", "out of stock", s.Clock.Now())
		s.rest("shop")
		s.Expect(s.history("shop")[0]).To(Equal(promoted{ID: 14, Tag: "1.14.0", State: v1alpha1.BakeFailed}))
	})
}

func TestFieldsThatUpstreamOwnsAreAdoptedWhenTheHistoryIsLost(t *testing.T) {
	s := openAfterUpstream(t, fixture.MakeRollout("shop"), nil)
	s.release("shop", "1.15.0") // which the gate does not allow
	s.deploy("shop")
	s.Expect(s.history("shop")).To(Equal([]promoted{
		{ID: fixture.Noon.Unix(), Tag: "1.14.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(s.carried("shop")).To(Equal(map[string]string{
		"tag": "1.14.0", "VERSION": "1.14.0", "CART": "2.0.0", "TIER": "gold", "REGION": "eu"}))
}

func TestFieldsThatUpstreamOwnsAndThatDisagreeAreNotTouched(t *testing.T) {
	s := openAfterUpstream(t, fixture.MakeRollout("shop"), nil)
	s.appliesAs("rollout-controller", `
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
spec: {ref: {tag: 1.13.0}}
`, nil)
	repository, kustomization := s.shopTargets()
	s.rest("shop")
	s.Expect(s.Wire.Writes()).To(Equal([]string{"patch Rollout/status shop"}))
	s.Expect(s.condition("shop", v1alpha1.StalledCondition).Reason).To(Equal(v1alpha1.TargetsDisagreeReason))
	repositoryNow, kustomizationNow := s.shopTargets()
	s.Expect(repositoryNow.ResourceVersion).To(Equal(repository.ResourceVersion))
	s.Expect(kustomizationNow.ResourceVersion).To(Equal(kustomization.ResourceVersion))
}
