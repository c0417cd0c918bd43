// SPDX-License-Identifier: Apache-2.0

package tree_test

import (
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestTraceGoesUpToTheRelease(t *testing.T) {
	web, manual, chart, lonely, image, generated := deployment("web"), deployment("manual"), deployment("chart"), deployment("lonely"), deployment("image"), deployment("generated")
	pod := podOf(web, "web-7d4b-x", corev1.PodStatus{})
	pod.Labels = nil
	set := &appsv1.ReplicaSet{ObjectMeta: named("web-7d4b")}
	set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Controller: ptr.To(true)}}
	release := fixture.MakeHelmRelease("chart").From(sourcev1.OCIRepositoryKind, "shop").Deployed(fixture.Revision("1.0.0")).Obj()
	label(chart, helmv2.GroupVersion.Group, release)
	values := fixture.MakeHelmRelease("values").FromChart("values").DrivenBy("shop", "image.tag").Deployed("6.0.0").Obj()
	label(image, helmv2.GroupVersion.Group, values)
	variables := fixture.MakeKustomization("variables").From("GitRepository", "fleet").DrivenBy("shop", "TAG").DrivenBy("cart", "CART").Obj()
	having(variables, manual)
	plain := having(fixture.MakeKustomization("plain").From("GitRepository", "fleet").Obj(), lonely)
	parent := having(fixture.MakeKustomization("parent").From("GitRepository", "fleet").Obj(), plain)
	generator := fixture.MakeGenerator("parts").Takes("app", sourcev1.OCIRepositoryKind, "shop").Takes("files", sourcev1.BucketKind, "files").Makes("part", "@app", "app")
	part := generator.Builds(nil, pulled())[0]
	taking := having(fixture.MakeKustomization("taking").From(sourcev1.ExternalArtifactKind, "part").Applied(part.Status.Artifact.Revision).Obj(), generated)
	circle := fixture.MakeKustomization("circle").From("GitRepository", "fleet").Obj()
	having(circle, circle)
	cluster := clusterOf(t, append(offer("1.0.0", "1.1.0"), running(), pulled(), appliedKustomization("shop", web), web, set, pod,
		release, chart, values, image, variables, manual, plain, parent, lonely, circle, configMap("stray"), generator.Obj(), part, taking, generated)...)
	for name, tt := range map[string]struct {
		kind schema.GroupVersionKind
		name string
	}{
		"of a Deployment":   {appsv1.SchemeGroupVersion.WithKind("Deployment"), "web"},
		"of a pod":          {corev1.SchemeGroupVersion.WithKind("Pod"), "web-7d4b-x"},
		"of a chart":        {appsv1.SchemeGroupVersion.WithKind("Deployment"), "chart"},
		"of values":         {appsv1.SchemeGroupVersion.WithKind("Deployment"), "image"},
		"of variables":      {appsv1.SchemeGroupVersion.WithKind("Deployment"), "manual"},
		"without a Rollout": {appsv1.SchemeGroupVersion.WithKind("Deployment"), "lonely"},
		"without Flux":      {corev1.SchemeGroupVersion.WithKind("ConfigMap"), "stray"},
		"of an artifact":    {appsv1.SchemeGroupVersion.WithKind("Deployment"), "generated"},
		"in a circle":       {circle.GroupVersionKind(), "circle"},
	} {
		t.Run(name, func(t *testing.T) {
			origin, err := tree.Trace(t.Context(), cluster, tt.kind, fixture.Namespace, tt.name)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			if err := show.Origin(&text, origin, show.TreeStyle{Style: show.Style{Unicode: true}}); err != nil {
				t.Fatal(err)
			}
			golden(t, "trace "+name, text.String())
		})
	}
	t.Run("the Rollouts", func(t *testing.T) {
		origin, err := tree.Trace(t.Context(), cluster, appsv1.SchemeGroupVersion.WithKind("Deployment"), fixture.Namespace, "manual")
		want := []types.NamespacedName{{Namespace: fixture.Namespace, Name: "cart"}, {Namespace: fixture.Namespace, Name: "shop"}}
		if diff := cmp.Diff(want, origin.Rollouts()); err != nil || diff != "" {
			t.Errorf("error %v (-want +got):\n%s", err, diff)
		}
	})
	t.Run("of nothing", func(t *testing.T) {
		_, err := tree.Trace(t.Context(), cluster, appsv1.SchemeGroupVersion.WithKind("Deployment"), fixture.Namespace, "none")
		if !apierrors.IsNotFound(err) {
			t.Errorf("got %v, want NotFound", err)
		}
	})
}
