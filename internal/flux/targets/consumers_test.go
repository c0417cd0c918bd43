// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"errors"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// kustomizationIn consumes the OCIRepository web of the Rollout shop from a namespace.
func kustomizationIn(namespace, name string) *fixture.KustomizationBuilder {
	return fixture.MakeKustomization(name).InNamespace(namespace).From("OCIRepository", "web").FromNamespace(fixture.Namespace)
}

func helmReleaseIn(namespace, name string) *fixture.HelmReleaseBuilder {
	return fixture.MakeHelmRelease(name).InNamespace(namespace).From("OCIRepository", "web").FromNamespace(fixture.Namespace)
}

const (
	nothingApplies = "no Kustomization or HelmRelease in this namespace applies it, so it counts as applied once Flux has pulled it: " +
		"check the sourceRef or chartRef of what should apply it"
	notWaitedFor = ": only Kustomizations and HelmReleases of this namespace are followed"
)

// An OCIRepository that has pulled the release is as far as what is known to apply it.
func TestConsumersOfARepository(t *testing.T) {
	for name, tt := range map[string]struct {
		consumers  []client.Object
		pulledOnly bool
		reason     v1alpha1.TargetReason
		message    string
	}{
		"a Kustomization":            {consumers: []client.Object{fixture.MakeKustomization("web").Obj()}},
		"a HelmRelease":              {consumers: []client.Object{fixture.MakeHelmRelease("web").Obj()}},
		"one that is suspended":      {consumers: []client.Object{fixture.MakeKustomization("web").Suspended().Obj()}},
		"a chart that Flux has made": {consumers: []client.Object{fixture.MakeHelmRelease("web").FromChart("web").Charted("OCIRepository/shop-prod/web").Obj()}},
		"none": {
			pulledOnly: true, reason: v1alpha1.TargetNoConsumer, message: nothingApplies,
		},
		"of another source, or of a source of another kind": {
			consumers: []client.Object{
				fixture.MakeKustomization("cart").Obj(), fixture.MakeKustomization("git").From("GitRepository", "web").Obj(),
				fixture.MakeKustomization("built").From("ExternalArtifact", "web").Obj(),
				fixture.MakeHelmRelease("chart").FromChart("web").Charted("shop-prod/web").Obj(),
				kustomizationIn("b", "shop").FromNamespace("c").Obj(),
			},
			pulledOnly: true, reason: v1alpha1.TargetNoConsumer, message: nothingApplies,
		},
		"one that is being deleted": {
			consumers:  []client.Object{fixture.MakeKustomization("web").Deleting().Obj(), kustomizationIn("b", "shop").Deleting().Obj()},
			pulledOnly: true, reason: v1alpha1.TargetNoConsumer, message: nothingApplies,
		},
		"one in another namespace": {
			consumers:  []client.Object{kustomizationIn("b", "shop").Obj()},
			pulledOnly: true, reason: v1alpha1.TargetConsumerElsewhere,
			message: "Kustomization b/shop applies it from another namespace, and is not waited for" + notWaitedFor,
		},
		"a HelmRelease in another namespace": {
			consumers:  []client.Object{helmReleaseIn("b", "shop").Obj()},
			pulledOnly: true, reason: v1alpha1.TargetConsumerElsewhere,
			message: "HelmRelease b/shop applies it from another namespace, and is not waited for" + notWaitedFor,
		},
		"in other namespaces, of which three are named": {
			consumers: []client.Object{
				kustomizationIn("e", "shop").Obj(), kustomizationIn("d", "shop").Obj(), helmReleaseIn("c", "shop").Obj(),
				kustomizationIn("b", "shop").Obj(), kustomizationIn("b", "again").Obj(),
			},
			pulledOnly: true, reason: v1alpha1.TargetConsumerElsewhere,
			message: "HelmRelease c/shop, Kustomization b/again, Kustomization b/shop and 2 more apply it from other namespaces, and are not waited for" + notWaitedFor,
		},
		"one in its namespace and one in another": {
			consumers: []client.Object{fixture.MakeKustomization("web").Obj(), kustomizationIn("b", "shop").Obj()},
			reason:    v1alpha1.TargetConsumerElsewhere,
			message:   "Kustomization b/shop applies it from another namespace, and is not waited for" + notWaitedFor,
		},
	} {
		t.Run(name, func(t *testing.T) {
			seen := observedRepository(t, "1.1.0", tt.consumers...)
			NewWithT(t).Expect([]any{seen.State, seen.PulledOnly, seen.Reason, seen.Message}).To(
				Equal([]any{v1alpha1.TargetApplied, tt.pulledOnly, tt.reason, tt.message}))
		})
	}
}

// What keeps a repository from pulling the release is said before what would apply it.
func TestRepositoryThatHasNotPulledSaysNothingOfItsConsumers(t *testing.T) {
	seen := observedRepository(t, "1.2.0")
	NewWithT(t).Expect([]any{seen.State, seen.PulledOnly, seen.Reason, seen.Message}).To(
		Equal([]any{v1alpha1.TargetPending, true, v1alpha1.TargetReason(""), ""}))
}

// Without HelmReleases in the cache, nothing is claimed of them.
func TestConsumersWhereHelmReleasesAreNotRead(t *testing.T) {
	g := NewWithT(t)
	reader := indexed(t, fixture.MakeRepository("web").DrivenBy("shop").Tag("1.1.0").Pulled(fixture.Revision("1.1.0")).Ready().Obj(),
		fixture.MakeHelmRelease("web").Obj(), helmReleaseIn("b", "shop").Obj())
	found, err := targets.Find(t.Context(), reader, shop, true)
	g.Expect(err).NotTo(HaveOccurred())
	found, err = targets.WithConsumersElsewhere(t.Context(), reader, found, false)
	g.Expect(err).NotTo(HaveOccurred())
	seen := found[0].Consumed(found[0].Observe(fixture.MakeRollout("shop").Obj(), byTag("1.1.0")), found, false)
	g.Expect(seen.Message).To(Equal("no Kustomization in this namespace applies it, so it counts as applied once Flux has pulled it: " +
		"check the sourceRef of what should apply it"))
}

// observedRepository returns what is observed of the OCIRepository of a Rollout, which has
// pulled 1.1.0, for a version and with consumers.
func observedRepository(t *testing.T, version string, consumers ...client.Object) content.Target {
	t.Helper()
	g := NewWithT(t)
	reader := indexed(t, append(consumers,
		fixture.MakeRepository("web").DrivenBy("shop").Tag("1.1.0").Pulled(fixture.Revision("1.1.0")).Ready().Obj())...)
	found, err := targets.Find(t.Context(), reader, shop, true)
	g.Expect(err).NotTo(HaveOccurred())
	found, err = targets.WithHelmReleases(t.Context(), reader, shop, found, true)
	g.Expect(err).NotTo(HaveOccurred())
	found, err = targets.WithConsumersElsewhere(t.Context(), reader, found, true)
	g.Expect(err).NotTo(HaveOccurred())
	last := found[len(found)-1]
	g.Expect(last.Repository).NotTo(BeNil(), "OCIRepositories are sorted to the end")
	return last.Consumed(last.Observe(fixture.MakeRollout("shop").Obj(), byTag(version)), found, true)
}

func TestConsumersElsewhereThatCannotBeReadAreAnError(t *testing.T) {
	for name, funcs := range map[string]interceptor.Funcs{
		"list Kustomizations of other namespaces: broken": {List: failingList[*kustomizev1.KustomizationList](errors.New("broken"))},
		"list HelmReleases of other namespaces: broken":   {List: failingList[*helmv2.HelmReleaseList](errors.New("broken"))},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := []targets.Target{repository(fixture.MakeRepository("web").DrivenBy("shop"))}
			found, err := targets.WithConsumersElsewhere(t.Context(), interceptor.NewClient(indexed(t), funcs), found, true)
			g.Expect(err).To(MatchError(name))
			g.Expect(found).To(BeNil())
		})
	}
}

// A HelmRelease whose chart Flux has made into an OCIRepository consumes that one.
func TestGeneratedChartIsConsumed(t *testing.T) {
	for name, tt := range map[string]struct {
		release *fixture.HelmReleaseBuilder
		want    string
	}{
		"an OCIRepository":                {fixture.MakeHelmRelease("web").FromChart("web").Charted("OCIRepository/shop-prod/web"), "OCIRepository shop-prod/web"},
		"a HelmChart":                     {fixture.MakeHelmRelease("web").FromChart("web").Charted("shop-prod/web"), ""},
		"of another kind":                 {fixture.MakeHelmRelease("web").FromChart("web").Charted("HelmChart/shop-prod/web"), ""},
		"none yet":                        {fixture.MakeHelmRelease("web").FromChart("web"), ""},
		"the spec counts, not the status": {fixture.MakeHelmRelease("web").From("OCIRepository", "now").Charted("OCIRepository/shop-prod/before"), "OCIRepository shop-prod/now"},
		"a reference to another kind":     {fixture.MakeHelmRelease("web").From("HelmChart", "now").Charted("OCIRepository/shop-prod/before"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			key, ok := targets.ChartOf(tt.release.Obj())
			got := ""
			if ok {
				got = key.String()
			}
			NewWithT(t).Expect(got).To(Equal(tt.want))
		})
	}
}

// A Kustomization of another namespace that cannot be decoded must not keep a Rollout from
// its targets.
func TestConsumerElsewhereThatCannotBeDecodedIsNamed(t *testing.T) {
	g := NewWithT(t)
	broken := kustomizationIn("b", "shop").Obj()
	unreadable.Mark(broken, "too large")
	found := []targets.Target{repository(fixture.MakeRepository("web").DrivenBy("shop"))}
	found, err := targets.WithConsumersElsewhere(t.Context(), unreadable.Client{Client: indexed(t, broken)}, found, true)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found[0].Elsewhere).To(Equal([]string{"Kustomization b/shop"}))
}
