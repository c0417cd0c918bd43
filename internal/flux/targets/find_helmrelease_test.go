// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// consumers returns objects that may use the OCIRepository web of the Rollout shop.
func consumers() []client.Object {
	return []client.Object{
		fixture.MakeRepository("web").DrivenBy("shop").Obj(),
		fixture.MakeRepository("web").InNamespace("elsewhere").DrivenBy("shop").Obj(),
		fixture.MakeRepository("cart").DrivenBy("cart").Obj(),
		fixture.MakeKustomization("web").Obj(),
		fixture.MakeHelmRelease("web").Obj(),
		fixture.MakeHelmRelease("again").From(sourcev1.OCIRepositoryKind, "web").Obj(),
		fixture.MakeHelmRelease("explicit").From(sourcev1.OCIRepositoryKind, "web").FromNamespace(fixture.Namespace).Obj(),
		fixture.MakeHelmRelease("foreign").From(sourcev1.OCIRepositoryKind, "web").FromNamespace("elsewhere").Obj(),
		fixture.MakeHelmRelease("outside").InNamespace("elsewhere").From(sourcev1.OCIRepositoryKind, "web").FromNamespace(fixture.Namespace).Obj(),
		fixture.MakeHelmRelease("artifact").From("ExternalArtifact", "web").Obj(),
		fixture.MakeHelmRelease("template").FromChart("web").Obj(),
		fixture.MakeHelmRelease("cart").Obj(),
	}
}

func TestHelmReleasesThatConsumeAreTargets(t *testing.T) {
	g := NewWithT(t)
	reader := indexed(t, consumers()...)
	found, err := targets.Find(t.Context(), reader, shop, true)
	g.Expect(err).NotTo(HaveOccurred())
	found, err = targets.WithHelmReleases(t.Context(), reader, shop, found, true)
	g.Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, each := range found {
		names = append(names, each.String())
		if each.HelmRelease != nil {
			g.Expect(each.Source.GetName()).To(Equal("web"))
		}
	}
	g.Expect(names).To(Equal([]string{
		"HelmRelease shop-prod/again", "HelmRelease shop-prod/explicit", "HelmRelease shop-prod/web",
		"Kustomization shop-prod/web", "OCIRepository shop-prod/web",
	}))
}

func TestHelmReleasesWithValuesAreTargets(t *testing.T) {
	for name, tt := range map[string]struct {
		objects []client.Object
		want    []carrier
	}{
		"of its namespace": {
			objects: []client.Object{
				web().DrivenBy("shop", "image.tag").DrivenBy("shop", "a..b").DrivenBy("cart", "cart").Obj(),
				fixture.MakeHelmRelease("cart").FromChart("cart").DrivenBy("cart", "image.tag").Obj(),
				web().InNamespace("elsewhere").DrivenBy("shop", "image.tag").Obj(),
			},
			want: []carrier{{Name: "HelmRelease shop-prod/web", Paths: []string{"a..b", "image.tag"}}},
		},
		"one that also consumes is one target": {
			objects: []client.Object{
				fixture.MakeRepository("web").DrivenBy("shop").Obj(),
				fixture.MakeHelmRelease("web").DrivenBy("shop", "image.tag").Obj(),
			},
			want: []carrier{{Name: "HelmRelease shop-prod/web", Paths: []string{"image.tag"}, Source: "web"}, {Name: "OCIRepository shop-prod/web"}},
		},
		"with the chart of another Rollout": {
			objects: []client.Object{
				fixture.MakeRepository("web").DrivenBy("charts").Obj(),
				fixture.MakeHelmRelease("web").DrivenBy("shop", "image.tag").Obj(),
			},
			want: []carrier{{Name: "HelmRelease shop-prod/web", Paths: []string{"image.tag"}, Source: "web"}},
		},
		"with a chart of another namespace, or with none": {
			objects: []client.Object{
				fixture.MakeRepository("base").InNamespace("platform").Obj(),
				fixture.MakeHelmRelease("far").From(sourcev1.OCIRepositoryKind, "base").FromNamespace("platform").DrivenBy("shop", "tag").Obj(),
				fixture.MakeHelmRelease("lost").DrivenBy("shop", "tag").Obj(),
			},
			want: []carrier{
				{Name: "HelmRelease shop-prod/far", Paths: []string{"tag"}, Source: "base"}, {Name: "HelmRelease shop-prod/lost", Paths: []string{"tag"}},
			},
		},
		"unless a substitute names it": {
			objects: []client.Object{func() client.Object {
				h := web().Obj()
				h.Annotations = fixture.MakeKustomization("web").DrivenBy("shop", "VERSION").Obj().Annotations
				return h
			}()},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			reader := indexed(t, tt.objects...)
			all, err := targets.Find(t.Context(), reader, shop, true)
			g.Expect(err).NotTo(HaveOccurred())
			all, err = targets.WithHelmReleases(t.Context(), reader, shop, all, true)
			g.Expect(err).NotTo(HaveOccurred())
			var got []carrier
			for _, each := range all {
				c := carrier{Name: each.String(), Paths: each.Paths}
				if each.Source != nil {
					c.Source = each.Source.GetName()
				}
				got = append(got, c)
			}
			g.Expect(got).To(Equal(tt.want))
		})
	}
}

// carrier contains the fields of a target with values that matter.
type carrier struct {
	Name   string
	Paths  []string
	Source string
}

func TestHelmReleasesThatCannotBeReadAreAnError(t *testing.T) {
	g := NewWithT(t)
	reader := interceptor.NewClient(indexed(t, consumers()...), interceptor.Funcs{List: failingList[*helmv2.HelmReleaseList](errors.New("broken"))})
	found, err := targets.Find(t.Context(), reader, shop, true)
	g.Expect(err).NotTo(HaveOccurred())
	found, err = targets.WithHelmReleases(t.Context(), reader, shop, found, true)
	g.Expect(err).To(MatchError("list HelmReleases: broken"))
	g.Expect(found).To(BeNil())
}

func TestHelmReleasesAreReadLive(t *testing.T) {
	g := NewWithT(t)
	now := fixture.Revision("1.1.0")
	stale := []targets.Target{
		{HelmRelease: fixture.MakeHelmRelease("gone").From(sourcev1.OCIRepositoryKind, "web").Obj(), Source: fixture.MakeRepository("web").Obj()},
		{HelmRelease: fixture.MakeHelmRelease("web").Obj(), Source: fixture.MakeRepository("web").Obj()},
		repository(fixture.MakeRepository("web")),
	}
	stored := indexed(t,
		fixture.MakeHelmRelease("web").Deployed(now).Ready().Obj(),
		fixture.MakeRepository("web").DrivenBy("shop").Tag("1.1.0").Pulled(now).Ready().Obj(),
	)
	read := map[string]int{}
	counted := interceptor.NewClient(stored, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			read[fmt.Sprintf("%T %s", o, key.Name)]++
			return c.Get(ctx, key, o, options...)
		},
	})
	seen := map[int]string{}
	err := targets.EachLive(t.Context(), counted, stale, func(i int, each targets.Target) {
		seen[i] = each.String() + " " + string(each.Observe(fixture.MakeRollout("shop").Obj(), byTag("1.1.0")).State)
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(seen).To(Equal(map[int]string{1: "HelmRelease shop-prod/web Applied", 2: "OCIRepository shop-prod/web Applied"}))
	g.Expect(read).To(Equal(map[string]int{"*v2.HelmRelease gone": 1, "*v2.HelmRelease web": 1, "*v1.OCIRepository web": 1}))
}
