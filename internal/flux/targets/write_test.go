// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	NewWithT(t).Expect(sourcev1.AddToScheme(s)).To(Succeed())
	NewWithT(t).Expect(generatorv1.AddToScheme(s)).To(Succeed())
	NewWithT(t).Expect(kustomizev1.AddToScheme(s)).To(Succeed())
	NewWithT(t).Expect(helmv2.AddToScheme(s)).To(Succeed())
	return s
}

// sent is the request that reaches the API server.
type sent struct {
	Type         types.PatchType
	Body         string
	FieldManager string
}

// promoted returns the history entry #7, with version 1.1.0.
func promoted() *v1alpha1.DeploymentHistoryEntry {
	entry := fixture.MakeEntry("1.1.0").ID(7).Obj()
	return &entry
}

func TestExactlyOurFieldsAreSent(t *testing.T) {
	for name, tt := range map[string]struct {
		target targets.Target
		want   string
	}{
		"the tag of a repository": {
			target: repository(fixture.MakeRepository("web").Tag("1.0.0")),
			want:   `{"metadata":{"annotations":{"promotion.rollout.kuberik.com/shop":"7","reconcile.fluxcd.io/requestedAt":"2026-03-02T12:00:00Z"},"resourceVersion":"999"},"spec":{"ref":{"tag":"1.1.0"}}}`,
		},
		"the substitutes of a Kustomization, without those of others": {
			target: kustomization(fixture.MakeKustomization("web").DrivenBy("shop", "B").DrivenBy("shop", "A").
				DrivenBy("cart", "CART").Substitute("TIER", "gold")),
			want: `{"metadata":{"annotations":{"promotion.rollout.kuberik.com/shop":"7","reconcile.fluxcd.io/requestedAt":"2026-03-02T12:00:00Z"},"resourceVersion":"999"},"spec":{"postBuild":{"substitute":{"A":"1.1.0","B":"1.1.0"}}}}`,
		},
		"no substitute that Flux does not accept": {
			target: kustomization(fixture.MakeKustomization("web").DrivenBy("shop", "A").DrivenBy("shop", "MY-VAR")),
			want:   `{"metadata":{"annotations":{"promotion.rollout.kuberik.com/shop":"7","reconcile.fluxcd.io/requestedAt":"2026-03-02T12:00:00Z"},"resourceVersion":"999"},"spec":{"postBuild":{"substitute":{"A":"1.1.0"}}}}`,
		},
		"the values of a HelmRelease, without those of others": {
			target: helmRelease(web().DrivenBy("shop", "web.image.tag").DrivenBy("shop", "version").DrivenBy("shop", "web.tag").
				DrivenBy("cart", "cart.tag").Values(`{"web":{"name":"web"},"replicas":3}`)),
			want: `{"metadata":{"annotations":{"promotion.rollout.kuberik.com/shop":"7","reconcile.fluxcd.io/requestedAt":"2026-03-02T12:00:00Z"},"resourceVersion":"999"},` +
				`"spec":{"values":{"version":"1.1.0","web":{"image":{"tag":"1.1.0"},"tag":"1.1.0"}}}}`,
		},
		"no value without a path": {
			target: helmRelease(web().DrivenBy("shop", "tag").DrivenBy("shop", "a..b")),
			want: `{"metadata":{"annotations":{"promotion.rollout.kuberik.com/shop":"7","reconcile.fluxcd.io/requestedAt":"2026-03-02T12:00:00Z"},"resourceVersion":"999"},` +
				`"spec":{"values":{"tag":"1.1.0"}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var got sent
			c := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme(t)).Build(), interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
					body, err := p.Data(o)
					got = sent{p.Type(), string(body), (&client.PatchOptions{}).ApplyOptions(opts).FieldManager}
					return err
				},
			})
			tt.target.Object().SetResourceVersion("999")
			g.Expect(tt.target.Write(t.Context(), c, "shop", promoted(), fixture.Noon)).To(Succeed())
			g.Expect(got).To(Equal(sent{types.MergePatchType, tt.want, "rollout-controller"}))
		})
	}
}

func TestWriteTakesTheVersionOfTheObject(t *testing.T) {
	g := NewWithT(t)
	c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(fixture.MakeRepository("web").Tag("1.0.0").Obj()).Build()
	web := targets.Target{Repository: &sourcev1.OCIRepository{}}
	g.Expect(c.Get(t.Context(), types.NamespacedName{Namespace: fixture.Namespace, Name: "web"}, web.Repository)).To(Succeed())
	before := web.Repository.GetResourceVersion()

	g.Expect(web.Write(t.Context(), c, "shop", promoted(), fixture.Noon)).To(Succeed())
	g.Expect(web.Repository.GetResourceVersion()).NotTo(Equal(before))
	now := &sourcev1.OCIRepository{}
	g.Expect(c.Get(t.Context(), types.NamespacedName{Namespace: fixture.Namespace, Name: "web"}, now)).To(Succeed())
	g.Expect(now.Spec.Reference).To(Equal(&sourcev1.OCIRepositoryRef{Tag: "1.1.0"}))
	g.Expect(web.Repository.GetResourceVersion()).To(Equal(now.ResourceVersion))
}

func TestWriteOnWhatHasChangedOrIsGoneFails(t *testing.T) {
	g := NewWithT(t)
	c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(fixture.MakeRepository("web").Tag("1.0.0").Obj()).Build()
	stale := repository(fixture.MakeRepository("web").Tag("1.0.0"))
	stale.Repository.SetResourceVersion("1")
	g.Expect(apierrors.IsConflict(stale.Write(t.Context(), c, "shop", promoted(), fixture.Noon))).To(BeTrue())

	lost := repository(fixture.MakeRepository("lost"))
	lost.Repository.SetResourceVersion("1")
	err := lost.Write(t.Context(), c, "shop", promoted(), fixture.Noon)
	g.Expect(apierrors.IsNotFound(err)).To(BeTrue())
	g.Expect(err).To(MatchError(HavePrefix("patch OCIRepository shop-prod/lost: ")))
}
