// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// All samples together give an environment that waits for its first release and whose
// schedules work as they describe.
func TestSamplesWorkTogether(t *testing.T) {
	s := openAlone(t)
	for _, sample := range samples(t, "*.yaml") {
		if sample.GetKind() == "Namespace" {
			continue // the env has its own
		}
		if sample.GetNamespace() != "" {
			sample.SetNamespace(s.Namespace)
		}
		s.Expect(s.apply(sample)).To(Succeed(), "%s %s", sample.GetKind(), sample.GetName())
		t.Cleanup(func() { _ = testClient.Delete(context.WithoutCancel(s.Ctx), sample) })
	}
	s.rest("shop")
	s.Expect(s.condition("shop", v1alpha1.ReadyCondition)).To(Equal(condition{
		metav1.ConditionFalse, v1alpha1.NoReleasesReason, "ImagePolicy shop-manifests names no release yet"}))

	s.ChangeStatus(fixture.MakePolicy("shop-manifests").Obj(), func(o client.Object) { setLatest(o, "1.4.2") })
	s.deploy("shop")
	s.Expect(s.carried("shop-manifests")["tag"]).To(Equal("1.4.2"), "the sample of a gate names it")
	shown := s.rollout("shop").Status.Gates
	s.Expect(shown).NotTo(BeEmpty(), "the sample of a gate is of this Rollout")
}

// The sample of a chart is separate: not every cluster has HelmReleases.
func TestSampleOfAChartBakesOnceHelmIsDone(t *testing.T) {
	s := openAlone(t)
	s.applySamples(t, "helm")
	s.ChangeStatus(fixture.MakePolicy("shop-search").Obj(), func(o client.Object) { setLatest(o, "1.0.0") })
	s.deploy("shop-search")
	s.Expect(s.history("shop-search")[0].State).To(Equal(v1alpha1.BakeDeploying))
	s.helmDeploys("shop-search")
	s.rest("shop-search")
	s.Expect(s.history("shop-search")[0].State).To(Equal(v1alpha1.BakeInProgress))
}

func TestSampleOfAHelmReleaseHasTheVersionInItsValues(t *testing.T) {
	s := openAlone(t)
	s.applySamples(t, "helm")
	s.ChangeStatus(fixture.MakePolicy("shop-catalog").Obj(), func(o client.Object) { setLatest(o, "1.0.0") })
	s.deploy("shop-catalog")
	release := &helmv2.HelmRelease{}
	s.Expect(s.Get(s.Ctx, s.Key("shop-catalog"), release)).To(Succeed())
	s.Expect(release.Spec.Values.Raw).To(MatchJSON(`{"image": {"repository": "registry.example.com/shop/catalog", "tag": "1.0.0"}, "replicaCount": 2}`))
	s.Expect(s.history("shop-catalog")[0].State).To(Equal(v1alpha1.BakeDeploying), "Helm has not deployed it")
}

// The sample of a running application does not change that application.
func TestSampleOfARunningApplicationBeginsWithWhatRuns(t *testing.T) {
	s := open(t)
	s.applySamples(t, "running")
	s.ChangeStatus(fixture.MakePolicy("shop-payments").Obj(), func(o client.Object) { setLatest(o, "4.3.0") })
	s.deploy("shop-payments")
	s.Expect(s.history("shop-payments")).To(Equal([]promoted{{ID: 1, Tag: "4.2.0", State: v1alpha1.BakeInProgress}}))

	s.Pass(10 * time.Minute)
	s.rest("shop-payments")
	s.Expect(s.history("shop-payments")).To(Equal([]promoted{{ID: 1, Tag: "4.2.0", State: v1alpha1.BakeSucceeded}}))
	s.Expect(s.carried("shop-payments")).To(HaveKeyWithValue("tag", "4.2.0"), "the gate holds 4.3.0")

	s.Change(fixture.MakeGate("shop-payments-approval", "shop-payments").Obj(), func(o client.Object) {
		o.(*v1alpha1.RolloutGate).Spec.Passing = new(true)
	})
	s.deploy("shop-payments")
	s.Expect(s.carried("shop-payments")).To(HaveKeyWithValue("tag", "4.3.0"))
}

// The sample of a rollback goes back to its floor, after the time that it leaves to users.
func TestSampleOfARollbackGoesBack(t *testing.T) {
	s := openAlone(t)
	s.applySamples(t, "rollback")
	s.release("shop-orders", "1.4.0")
	s.deploy("shop-orders")
	s.Pass(30 * time.Minute)
	s.rest("shop-orders")
	s.release("shop-orders", "1.5.0")
	s.deploy("shop-orders")
	s.checkFails("shop-orders-kustomization-shop-orders", "down", s.Clock.Now())
	s.rest("shop-orders")
	s.Expect(s.condition("shop-orders", v1alpha1.RolledBackCondition).Reason).To(Equal(v1alpha1.RollbackDelayedReason))

	s.Pass(5 * time.Minute)
	s.deploy("shop-orders")
	s.Expect(s.history("shop-orders")).To(Equal([]promoted{
		{3, "1.4.0", v1alpha1.BakeInProgress}, {2, "1.5.0", v1alpha1.BakeFailed}, {1, "1.4.0", v1alpha1.BakeSucceeded},
	}))
	s.Expect(s.carried("shop-orders")).To(HaveKeyWithValue("tag", "1.4.0"))
	s.Pass(5 * time.Minute)
	s.rest("shop-orders")
	s.Expect(s.history("shop-orders")[0].State).To(Equal(v1alpha1.BakeSucceeded))
}

// The samples of a quarantine and of a recall hold their releases, and a failure becomes a
// quarantine.
func TestSamplesOfQuarantinesHoldReleases(t *testing.T) {
	s := openAlone(t)
	s.reconciler.late.quarantines.Store(true)
	s.LabelNamespace("samples.kuberik.com/environment", "production")
	s.applySamples(t, "quarantine")
	s.release("shop-cart", "1.1.0")
	s.deployAndBake("shop-cart")

	for _, held := range []struct{ tag, message string }{
		{"1.2.0", "1.2.0 is in quarantine by ClusterReleaseQuarantine shop-cart-cve: " +
			"contains a vulnerable library, fixed in 1.2.2; to end that, set its spec.lifted"},
		{"1.3.0", "1.3.0 is in quarantine by ReleaseQuarantine shop-cart-1.3.0 until 2027-07-01T00:00:00Z: " +
			"loses items of a cart, INC-4711; pin it to try it all the same, or set spec.lifted of the quarantine"},
	} {
		s.release("shop-cart", held.tag)
		s.rest("shop-cart")
		s.Expect(s.rollout("shop-cart").Status.ReleaseCandidates[0].Holds).To(ContainElement(
			HaveField("Message", held.message)), held.tag)
	}

	s.release("shop-cart", "1.4.0")
	s.deploy("shop-cart")
	s.checkFails("shop-cart-kustomization-shop-cart", "down", s.Clock.Now())
	s.rest("shop-cart")
	s.deployAndBake("shop-cart")
	s.Expect(s.history("shop-cart")).To(Equal([]promoted{
		{3, "1.1.0", v1alpha1.BakeSucceeded}, {2, "1.4.0", v1alpha1.BakeFailed}, {1, "1.1.0", v1alpha1.BakeSucceeded},
	}))
	name, _ := quarantine.Name(digestOf("1.4.0"))
	reported := &v1alpha1.ReleaseQuarantine{}
	s.Expect(s.Get(s.Ctx, s.Key(name), reported)).To(Succeed())
	s.Expect(reported.Status.Phase).To(Equal(v1alpha1.QuarantineHeld))
	s.Expect(reported.Status.Until.Sub(reported.Status.Failures[0].Time.Time)).To(Equal(12 * time.Hour))
}

// There is a sample of each class that is measured, and the API server accepts it.
func TestSamplesOfHealthChecksAreMeasured(t *testing.T) {
	s := openAlone(t)
	s.applySamples(t, "health")
	list := &v1alpha1.HealthCheckList{}
	s.Expect(s.List(s.Ctx, list, client.InNamespace(s.Namespace))).To(Succeed())
	classes := map[string]bool{}
	for i := range list.Items {
		classes[*list.Items[i].Spec.Class] = list.Items[i].IsMeasured()
	}
	s.Expect(classes).To(Equal(map[string]bool{"http": true, "job": true, "object": true, "prometheus": true}))
}

// applySamples applies the samples of a folder in the namespace of the env. Those without a
// namespace are deleted at the end of the test.
func (s *testEnv) applySamples(t *testing.T, folder string) {
	t.Helper()
	for _, sample := range samples(t, filepath.Join(folder, "*.yaml")) {
		if sample.GetNamespace() != "" {
			sample.SetNamespace(s.Namespace)
		} else {
			t.Cleanup(func() { _ = testClient.Delete(context.WithoutCancel(s.Ctx), sample) })
		}
		s.Expect(s.apply(sample)).To(Succeed(), "%s %s", sample.GetKind(), sample.GetName())
	}
}

// samples returns all sample manifests of a pattern, in the order of their files.
func samples(t *testing.T, pattern string) []*unstructured.Unstructured {
	t.Helper()
	g := NewWithT(t)
	paths, err := filepath.Glob(filepath.Join(parts.Root(), "config", "samples", pattern))
	g.Expect(err).NotTo(HaveOccurred())
	var all []*unstructured.Unstructured
	for _, path := range paths {
		if filepath.Base(path) == "kustomization.yaml" {
			continue
		}
		content, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
		for {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			g.Expect(err).NotTo(HaveOccurred())
			sample := &unstructured.Unstructured{}
			g.Expect(yaml.Unmarshal(document, &sample.Object)).To(Succeed(), path)
			all = append(all, sample)
		}
	}
	g.Expect(all).NotTo(BeEmpty())
	return all
}
