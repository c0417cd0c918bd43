// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/environment"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// laden adds metadata to an object that other clients write.
func laden(o client.Object) client.Object {
	o.SetResourceVersion("7")
	o.SetLabels(map[string]string{"app": "shop"})
	o.SetFinalizers([]string{"finalizers.fluxcd.io"})
	annotations := map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "note": "kept by nobody"}
	for key, value := range o.GetAnnotations() {
		annotations[key] = value
	}
	o.SetAnnotations(annotations)
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "kustomize-controller", Operation: metav1.ManagedFieldsOperationApply}})
	return o
}

// allIsWell removes the parts of a successful condition that are not kept.
func allIsWell(conditions []metav1.Condition) {
	conditions[0].Message, conditions[0].LastTransitionTime = "", metav1.Time{}
}

// excluding returns an ImageRepository that excludes tags.
func excluding(patterns ...string) *imagev1.ImageRepository {
	repository := fixture.MakeScan("excluding").Obj()
	repository.Spec.ExclusionList = patterns
	return repository
}

// fullHelmRelease returns a HelmRelease with many fields set.
func fullHelmRelease() *helmv2.HelmRelease {
	h := laden(fixture.MakeHelmRelease("shop").Installed(fixture.Revision("0.9.0"), "superseded").Attempted(fixture.Revision("1.0.0")).
		Snapshot("1.0.0+1", "sha256:1", "deployed").NoWait(false, true).Ready().Obj()).(*helmv2.HelmRelease)
	h.Spec.Values = &apiextensionsv1.JSON{Raw: []byte(`{"replicas":3}`)}
	h.Spec.Install.CreateNamespace, h.Spec.ReleaseName = true, "web"
	h.Status.Inventory = &helmv2.ResourceInventory{Entries: []helmv2.ResourceRef{{ID: "stage_shop_apps_Deployment", Version: "v1"}}}
	h.Status.LastAttemptedConfigDigest, h.Status.StorageNamespace = "sha256:3", "stage"
	h.Status.Conditions = append(h.Status.Conditions, metav1.Condition{Type: "Released", Status: metav1.ConditionTrue})
	return h
}

// helmReleaseOf returns a HelmRelease with only a name and a spec.
func helmReleaseOf(spec helmv2.HelmReleaseSpec) *helmv2.HelmRelease {
	h := fixture.MakeHelmRelease("shop").Obj()
	h.Spec = spec
	return h
}

// TestCachesKeepNoMoreThanIsRead checks that of Flux's objects only the offered,
// wanted and applied versions are kept. All tests of the reconcilers show that this is
// enough: they read through the same caches.
func TestCachesKeepNoMoreThanIsRead(t *testing.T) {
	g := NewWithT(t)
	fullKustomization := laden(fixture.MakeKustomization("shop").DrivenBy("shop", "VERSION").Substitute("VERSION", "1.0.0").Ready().Obj()).(*kustomizev1.Kustomization)
	fullKustomization.Spec.Patches = []kustomize.Patch{{Patch: "large"}}
	fullKustomization.Spec.PostBuild.SubstituteFrom = []kustomizev1.SubstituteReference{{Kind: "ConfigMap", Name: "cluster"}}
	fullKustomization.Status.Inventory = &kustomizev1.ResourceInventory{Entries: []kustomizev1.ResourceRef{{ID: "stage_shop_apps_Deployment", Version: "v1"}}}
	fullKustomization.Status.History = meta.History{{Digest: "sha256:1", LastReconciledStatus: "Said"}, {Digest: "sha256:0"}}
	fullKustomization.Status.Conditions = append(fullKustomization.Status.Conditions, metav1.Condition{Type: "Healthy"})
	keptKustomization := fixture.MakeKustomization("shop").DrivenBy("shop", "VERSION").Substitute("VERSION", "1.0.0").Ready().Obj()
	keptKustomization.Spec = kustomizev1.KustomizationSpec{SourceRef: keptKustomization.Spec.SourceRef, PostBuild: keptKustomization.Spec.PostBuild}
	keptKustomization.Status.History = meta.History{{Digest: "sha256:1"}}
	allIsWell(keptKustomization.Status.Conditions)

	fullRelease, keptRelease := fullHelmRelease(), helmReleaseOf(helmv2.HelmReleaseSpec{
		ChartRef: &helmv2.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "shop"}, Upgrade: &helmv2.Upgrade{DisableWait: true},
	})
	keptRelease.Status = fixture.MakeHelmRelease("shop").Attempted(fixture.Revision("1.0.0")).Ready().Obj().Status
	keptRelease.Status.History = helmv2.Snapshots{{Version: 2, Status: "deployed", OCIDigest: "sha256:1", ChartVersion: "1.0.0+1"}}
	allIsWell(keptRelease.Status.Conditions)

	fullGenerated := fullHelmRelease()
	fullGenerated.Spec.ChartRef, fullGenerated.Spec.Chart = nil, fixture.MakeHelmRelease("shop").FromChart("shop").Obj().Spec.Chart
	fullGenerated.Status.HelmChart = "OCIRepository/stage/shop-shop"
	keptGenerated := keptRelease.DeepCopy()
	keptGenerated.Spec.ChartRef, keptGenerated.Status.HelmChart = nil, fullGenerated.Status.HelmChart

	fullRepository := laden(fixture.MakeRepository("shop").DrivenBy("shop").Tag("1.0.0").Pulled(fixture.Revision("1.0.0")).Ready().Obj()).(*sourcev1.OCIRepository)
	keptRepository := fixture.MakeRepository("shop").DrivenBy("shop").Tag("1.0.0").Ready().Obj()
	keptRepository.Spec = sourcev1.OCIRepositorySpec{URL: keptRepository.Spec.URL, Reference: keptRepository.Spec.Reference}
	keptRepository.Status.Artifact = &meta.Artifact{Revision: fixture.Revision("1.0.0")}
	allIsWell(keptRepository.Status.Conditions)

	fullPolicy := laden(fixture.MakePolicy("shop").Latest("1.0.0").Obj()).(*imagev1.ImagePolicy)
	fullPolicy.Status.ObservedPreviousRef = &imagev1.ImageRef{Tag: "0.9.0"}
	fullScan := laden(fixture.MakeScan("shop").Found("1.0.0").Obj()).(*imagev1.ImageRepository)
	fullScan.Spec.ExclusionList, fullScan.Status.ObservedExclusionList = []string{`^.*\.sig$`}, []string{`^.*\.sig$`}

	fullCheck := laden(fixture.MakeHealthCheck("shop").Healthy().Obj())
	keptCheck := fixture.MakeHealthCheck("shop").Healthy().Obj()
	keptCheck.Labels = map[string]string{"app": "shop"}
	keptCheck.Finalizers = []string{"finalizers.fluxcd.io"}

	infos := []environmentsv1.EnvironmentInfo{{Environment: "shop", History: []v1alpha1.DeploymentHistoryEntry{fixture.MakeEntry("1.0.0").Obj()}}}
	said := environmentsv1.Release{Tag: "1.0.0", State: v1alpha1.BakeSucceeded}
	fullEnvironment := laden(fixture.MakeEnvironment("shop").After("staging").Says(said).Obj()).(*environmentsv1.Environment)
	fullEnvironment.Status.EnvironmentInfos = infos
	keptEnvironment := fixture.MakeEnvironment("shop").After("staging").Says(said).Obj()
	keptEnvironment.Finalizers = keptCheck.Finalizers
	keptEnvironment.Status.EnvironmentInfos = infos
	environment.DigestInfos(keptEnvironment)

	keptPolicy, keptScan := fixture.MakePolicy("shop").Latest("1.0.0").Obj(), fixture.MakeScan("shop").Found("1.0.0").Obj()
	keptPolicy.Status.ObservedGeneration, keptScan.Status.ObservedGeneration = 0, 0
	allIsWell(keptPolicy.Status.Conditions)
	allIsWell(keptScan.Status.Conditions)
	for _, tt := range []struct{ full, kept client.Object }{
		{fullKustomization, keptKustomization},
		{fullRelease, keptRelease},
		{laden(fixture.MakeHelmRelease("shop").FromChart("shop").Deployed(fixture.Revision("1.0.0")).Ready().Obj()), helmReleaseOf(helmv2.HelmReleaseSpec{})},
		{fullGenerated, keptGenerated},
		{fullRepository, keptRepository},
		{fullPolicy, keptPolicy},
		{fullScan, keptScan},
		{laden(excluding("^main-")), excluding("^main-")},
		{fullCheck, keptCheck},
		{fullEnvironment, keptEnvironment},
	} {
		tt.kept.SetResourceVersion("7")
		tt.kept.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		for range 2 { // an object may be trimmed more than once
			got, err := new(trimmer).trim(tt.full)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(tt.kept))
		}
	}
}

// TestHandledRequestIsKeptUntilAKustomizationIsReady: the request proves which version
// Flux has found to be unhealthy.
func TestHandledRequestIsKeptUntilAKustomizationIsReady(t *testing.T) {
	for name, tt := range map[string]struct {
		given *fixture.KustomizationBuilder
		kept  bool
	}{
		"ready":         {given: fixture.MakeKustomization("shop").Ready()},
		"unhealthy":     {given: fixture.MakeKustomization("shop").Ready().Condition(meta.ReadyCondition, metav1.ConditionFalse, 1, "no"), kept: true},
		"tried again":   {given: fixture.MakeKustomization("shop").Ready().Condition(meta.ReadyCondition, metav1.ConditionUnknown, 1, "busy"), kept: true},
		"never applied": {given: fixture.MakeKustomization("shop"), kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			k := tt.given.Requested("now", "now").Obj()
			for range 2 { // an object may be trimmed more than once
				_, err := new(trimmer).trim(k)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(k.Annotations[meta.ReconcileRequestAnnotation] == "now").To(Equal(tt.kept))
				g.Expect(k.Status.LastHandledReconcileAt == "now").To(Equal(tt.kept))
			}
		})
	}
}

// TestCachedObjectsShareWhatTheyHaveInCommon checks that equal values of thousands of
// objects are in memory once, no matter how often they were decoded.
func TestCachedObjectsShareWhatTheyHaveInCommon(t *testing.T) {
	g := NewWithT(t)
	cached, rollout := new(trimmer), fixture.MakeRollout("shop").Annotate("note", "here").Ledger("1.0.0", "1.1.0").Obj()
	rollout.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "RolloutSucceeded"}}
	rollout.Status.History = []v1alpha1.DeploymentHistoryEntry{{Version: rollout.Status.AvailableReleases[1]}}
	decoded := func() *v1alpha1.Rollout {
		text, err := json.Marshal(rollout)
		g.Expect(err).NotTo(HaveOccurred())
		r := &v1alpha1.Rollout{}
		g.Expect(json.Unmarshal(text, r)).To(Succeed())
		_, err = cached.trim(r)
		g.Expect(err).NotTo(HaveOccurred())
		return r
	}
	first, second := decoded(), decoded()
	g.Expect(second).To(Equal(first))
	same := func(a, b string) { g.Expect(unsafe.StringData(a)).To(BeIdenticalTo(unsafe.StringData(b)), a) }
	same(first.Namespace, second.Namespace)
	same(first.Status.Conditions[0].Type, second.Status.Conditions[0].Type)
	same(first.Status.Conditions[0].Reason, second.Status.Conditions[0].Reason)
	same(first.Status.AvailableReleases[1].Tag, first.Status.History[0].Version.Tag)
	for key := range first.Annotations {
		for other := range second.Annotations {
			same(key, other)
		}
	}
}

// TestObjectsOfFluxThatAreReadyShareThat checks that only these objects share conditions.
// Others keep their transition times.
func TestObjectsOfFluxThatAreReadyShareThat(t *testing.T) {
	g := NewWithT(t)
	cached := new(trimmer)
	trimmed := func(since int64, more ...metav1.Condition) []metav1.Condition {
		k := fixture.MakeKustomization("shop").Ready().Obj()
		k.Status.Conditions[0].LastTransitionTime = metav1.Unix(since, 0)
		k.Status.Conditions = append(k.Status.Conditions, more...)
		_, err := cached.trim(k)
		g.Expect(err).NotTo(HaveOccurred())
		return k.Status.Conditions
	}
	first, second := trimmed(1), trimmed(2)
	g.Expect(first).To(ConsistOf(HaveField("Type", meta.ReadyCondition)))
	g.Expect(&first[0]).To(BeIdenticalTo(&second[0]))
	busy := trimmed(3, metav1.Condition{Type: meta.ReconcilingCondition, Status: metav1.ConditionTrue})
	g.Expect(busy[0].LastTransitionTime).To(Equal(metav1.Unix(3, 0)))
	g.Expect(&busy[0]).NotTo(BeIdenticalTo(&first[0]))
}

// TestSharedWordsAreLimited: every object may have a different reason.
func TestSharedWordsAreLimited(t *testing.T) {
	g := NewWithT(t)
	var w words
	for i := range 2 * mostWords {
		reason := fmt.Sprintf("Reason%d", i)
		g.Expect(one(&w, reason)).To(Equal(reason))
	}
	long := strings.Repeat("x", longestWord+1)
	g.Expect(one(&w, long)).To(Equal(long))
	g.Expect(w.known).To(HaveLen(mostWords))
	g.Expect(w.known).NotTo(HaveKey(long))
}
