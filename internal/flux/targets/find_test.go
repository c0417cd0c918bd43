// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"errors"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// builderIndexer adds the indexes of the package to a fake client.
type builderIndexer struct{ *fake.ClientBuilder }

func (b builderIndexer) IndexField(_ context.Context, o client.Object, field string, values client.IndexerFunc) error {
	b.WithIndex(o, field, values)
	return nil
}

func indexed(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	b := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objects...)
	NewWithT(t).Expect(targets.Index(t.Context(), builderIndexer{b})).To(Succeed())
	NewWithT(t).Expect(targets.IndexHelmReleases(t.Context(), builderIndexer{b})).To(Succeed())
	NewWithT(t).Expect(targets.IndexGitRepositories(t.Context(), builderIndexer{b})).To(Succeed())
	NewWithT(t).Expect(targets.IndexArtifacts(t.Context(), builderIndexer{b})).To(Succeed())
	return b.Build()
}

// found contains the fields of a target that matter.
type found struct {
	Name      string
	Variables []string
	Source    string
}

var shop = types.NamespacedName{Namespace: fixture.Namespace, Name: "shop"}

func TestTargetsOfARollout(t *testing.T) {
	for name, tt := range map[string]struct {
		objects []client.Object
		want    []found
	}{
		"none": {},
		"repositories that name it, and no others": {
			objects: []client.Object{
				fixture.MakeRepository("web").DrivenBy("shop").Obj(),
				fixture.MakeRepository("cart").DrivenBy("cart").Obj(),
				fixture.MakeRepository("plain").Obj(),
				fixture.MakeRepository("web").InNamespace("elsewhere").DrivenBy("shop").Obj(),
			},
			want: []found{{Name: "OCIRepository shop-prod/web"}},
		},
		"Kustomizations that consume its repositories": {
			objects: []client.Object{
				fixture.MakeRepository("web").DrivenBy("shop").Obj(),
				fixture.MakeKustomization("web").Obj(),
				fixture.MakeKustomization("again").From("OCIRepository", "web").Obj(),
				fixture.MakeKustomization("explicit").From("OCIRepository", "web").FromNamespace(fixture.Namespace).Obj(),
				fixture.MakeKustomization("git").From("GitRepository", "web").Obj(),
				fixture.MakeKustomization("foreign").From("OCIRepository", "web").FromNamespace("elsewhere").Obj(),
			},
			want: []found{
				{Name: "Kustomization shop-prod/again", Source: "web"},
				{Name: "Kustomization shop-prod/explicit", Source: "web"},
				{Name: "Kustomization shop-prod/web", Source: "web"},
				{Name: "OCIRepository shop-prod/web"},
			},
		},
		"a Kustomization that consumes and carries is one target": {
			objects: []client.Object{
				fixture.MakeRepository("web").DrivenBy("shop").Obj(),
				fixture.MakeKustomization("web").DrivenBy("shop", "VERSION").DrivenBy("cart", "CART").Obj(),
			},
			want: []found{
				{Name: "Kustomization shop-prod/web", Variables: []string{"VERSION"}, Source: "web"},
				{Name: "OCIRepository shop-prod/web"},
			},
		},
		"a source that is missing, or of another kind, is none": {
			objects: []client.Object{
				fixture.MakeKustomization("lost").DrivenBy("shop", "A").Obj(),
				fixture.MakeKustomization("git").From("GitRepository", "web").DrivenBy("shop", "A").Obj(),
			},
			want: []found{
				{Name: "Kustomization shop-prod/git", Variables: []string{"A"}},
				{Name: "Kustomization shop-prod/lost", Variables: []string{"A"}},
			},
		},
		"a source in another namespace counts": {
			objects: []client.Object{
				fixture.MakeRepository("base").InNamespace("platform").Obj(),
				fixture.MakeKustomization("web").From("OCIRepository", "base").FromNamespace("platform").DrivenBy("shop", "A").Obj(),
			},
			want: []found{{Name: "Kustomization shop-prod/web", Variables: []string{"A"}, Source: "base"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			all, err := targets.Find(t.Context(), indexed(t, tt.objects...), shop, true)
			g.Expect(err).NotTo(HaveOccurred())
			var got []found
			for _, each := range all {
				f := found{Name: each.String(), Variables: each.Variables}
				if each.Source != nil {
					f.Source = each.Source.GetName()
				}
				got = append(got, f)
			}
			g.Expect(got).To(Equal(tt.want))
		})
	}
}

func TestFindReturnsReadErrorsAndNoMissingTargets(t *testing.T) {
	broken := errors.New("broken")
	objects := []client.Object{
		fixture.MakeRepository("web").DrivenBy("shop").Obj(), fixture.MakeKustomization("web").DrivenBy("shop", "A").From("OCIRepository", "base").Obj(),
	}
	for name, funcs := range map[string]interceptor.Funcs{
		"list OCIRepositories: broken": {List: failingList[*sourcev1.OCIRepositoryList](broken)},
		"list GitRepositories: broken": {List: failingList[*sourcev1.GitRepositoryList](broken)},
		"list Kustomizations: broken":  {List: failingList[*kustomizev1.KustomizationList](broken)},
		"get OCIRepository shop-prod/base: broken": {
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return broken
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			all, err := targets.Find(t.Context(), interceptor.NewClient(indexed(t, objects...), funcs), shop, true)
			g.Expect(err).To(MatchError(name))
			g.Expect(all).To(BeNil())
		})
	}
}

func failingList[L client.ObjectList](err error) func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
	return func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(L); ok {
			return err
		}
		return c.List(ctx, list, opts...)
	}
}
