// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"context"
	"errors"
	"testing"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	ours "github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func clusterWith(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(errors.Join(v1alpha1.AddToScheme(scheme), environmentsv1.AddToScheme(scheme), imagev1.AddToScheme(scheme))).To(Succeed())
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func TestPlaceOfAReport(t *testing.T) {
	rollout := fixture.MakeRollout("shop").Obj()
	policy := fixture.MakePolicy(rollout.Spec.ReleasesImagePolicy.Name).Of("", "images").Obj()
	elsewhere := fixture.MakePolicy(policy.Name).Of("flux-system", "images").Obj()
	for name, test := range map[string]struct {
		objects []client.Object
		secret  string
		want    ours.Place
	}{
		"with the login of the Rollout's images":       {objects: []client.Object{rollout, policy}, want: ours.Place{ImageRepository: "images"}},
		"with a login of its own, and the proxy there": {objects: []client.Object{rollout, policy}, secret: "login", want: ours.Place{Secret: "login", ImageRepository: "images"}},
		"without a Rollout":                            {objects: []client.Object{policy}},
		"without an ImagePolicy":                       {objects: []client.Object{rollout}},
		"with images of another namespace":             {objects: []client.Object{rollout, elsewhere}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			e := fixture.MakeEnvironment("shop").With(func(spec *environmentsv1.EnvironmentSpec) {
				spec.Backend = environmentsv1.Backend{Type: environmentsv1.BackendOCI, Secret: test.secret, Insecure: true}
			}).Obj()
			test.want.Repository, test.want.Tag, test.want.Namespace, test.want.Insecure = "registry.example.com/promotions", "shop.shop", e.Namespace, true
			place, err := ours.PlaceOf(t.Context(), clusterWith(t, test.objects...), e, "registry.example.com/promotions", "shop.shop")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(place).To(Equal(test.want))
		})
	}
}

func TestPlaceOfAReportIsNotGuessed(t *testing.T) {
	g := NewWithT(t)
	away := interceptor.NewClient(clusterWith(t), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("the cache is not filled")
		},
	})
	_, err := ours.PlaceOf(t.Context(), away, fixture.MakeEnvironment("shop").Obj(), "registry.example.com/promotions", "shop.shop")
	g.Expect(err).To(MatchError(ContainSubstring("get Rollout shop-prod/shop: the cache is not filled")))
}
