// SPDX-License-Identifier: Apache-2.0

package imagepolicy_test

import (
	"context"
	"errors"
	"testing"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/flux/imagepolicy"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func serving(versions ...string) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, version := range versions {
		gv := schema.GroupVersion{Group: "image.toolkit.fluxcd.io", Version: version}
		mapper.Add(gv.WithKind("ImagePolicy"), meta.RESTScopeNamespace)
		mapper.Add(gv.WithKind("ImageRepository"), meta.RESTScopeNamespace)
	}
	return mapper
}

func TestImageAPIIsReadInTheVersionThatIsServed(t *testing.T) {
	for name, tt := range map[string]struct {
		served []string
		want   string
	}{
		"v1 where both are served":       {served: []string{"v1beta2", "v1"}, want: "v1"},
		"v1 alone":                       {served: []string{"v1"}, want: "v1"},
		"v1beta2 where v1 is not served": {served: []string{"v1beta2", "v1beta1"}, want: "v1beta2"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			want := schema.GroupVersion{Group: "image.toolkit.fluxcd.io", Version: tt.want}
			got, err := imagepolicy.AddImageTypes(scheme, serving(tt.served...))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(want))
			for _, object := range []runtime.Object{
				&imagev1.ImagePolicy{}, &imagev1.ImagePolicyList{}, &imagev1.ImageRepository{}, &imagev1.ImageRepositoryList{},
			} {
				kinds, _, err := scheme.ObjectKinds(object)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(kinds).To(HaveLen(1))
				g.Expect(kinds[0].GroupVersion()).To(Equal(want))
			}
		})
	}
}

func TestAPIServerWithoutTheImageAPIIsAnError(t *testing.T) {
	for name, served := range map[string][]string{"none": nil, "only what is too old": {"v1beta1"}} {
		t.Run(name, func(t *testing.T) {
			_, err := imagepolicy.AddImageTypes(runtime.NewScheme(), serving(served...))
			NewWithT(t).Expect(err).To(MatchError("the API server serves no ImagePolicy.image.toolkit.fluxcd.io: " +
				"install Flux's image-reflector-controller (Flux 2.6 or newer)"))
		})
	}
}

// silent is a mapper whose API server does not answer.
type silent struct{ meta.RESTMapper }

func (silent) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("no answer")
}

func TestAPIServerThatDoesNotAnswerIsNotTakenForAnOldOne(t *testing.T) {
	_, err := imagepolicy.AddImageTypes(runtime.NewScheme(), silent{})
	NewWithT(t).Expect(err).To(MatchError("look up ImagePolicy.image.toolkit.fluxcd.io: no answer"))
}

// oneIndex records the one field index that the package adds.
type oneIndex struct {
	field  string
	values client.IndexerFunc
}

func (i *oneIndex) IndexField(_ context.Context, _ client.Object, field string, values client.IndexerFunc) error {
	i.field, i.values = field, values
	return nil
}

func TestPoliciesAreFoundByTheirImageRepository(t *testing.T) {
	g := NewWithT(t)
	index := &oneIndex{}
	g.Expect(imagepolicy.Index(t.Context(), index)).To(Succeed())
	g.Expect(index.field).To(Equal(imagepolicy.RepositoryIndex))
	g.Expect(index.values(fixture.MakePolicy("shop").Obj())).To(Equal([]string{"shop-prod/shop"}))
	g.Expect(index.values(fixture.MakePolicy("shop").Of("registry", "web").Obj())).To(Equal([]string{"registry/web"}))
}
