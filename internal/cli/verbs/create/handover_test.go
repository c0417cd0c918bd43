// SPDX-License-Identifier: Apache-2.0

package create

import (
	"context"
	"errors"
	"testing"

	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
)

func TestImageAutomationIsFoundBesideThePolicyAndInFiles(t *testing.T) {
	scheme, _, err := program.NewScheme("v1")
	if err != nil {
		t.Fatal(err)
	}
	policy := &imagev1.ImagePolicy{}
	policy.Namespace, policy.Name = "shop", "shop"
	policy.Status.LatestRef = &imagev1.ImageRef{Tag: "1.2.3"}
	updates := &unstructured.Unstructured{}
	updates.SetGroupVersionKind(imagev1.GroupVersion.WithKind("ImageUpdateAutomation"))
	updates.SetNamespace("shop")
	updates.SetName("fleet")
	refused := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("no right")
	}}
	build := func(objects ...client.Object) client.WithWatch {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	}
	for name, tt := range map[string]struct {
		world  world
		policy string
		want   automation
	}{
		"in the cluster":                     {world{Reader: build(policy, updates)}, "shop", automation{"for ImageUpdateAutomation fleet", "1.2.3"}},
		"not in the cluster":                 {world{Reader: build(policy)}, "shop", automation{}},
		"for a policy that does not exist":   {world{Reader: build(updates)}, "shop", automation{}},
		"where the user may not look for it": {world{Reader: interceptor.NewClient(build(policy, updates), refused)}, "shop", automation{}},
		"at a tag":                           {marked(`    tag: 1.2.3 # {"$imagepolicy": "flux-system:shop:tag"}`), "shop", automation{"in a.yaml:2", "1.2.3"}},
		"at an image":                        {marked(`  image: r.example.com/shop:v1.2.3-rc.1 # {"$imagepolicy": "shop:shop"}`), "shop", automation{"in a.yaml:2", "v1.2.3-rc.1"}},
		"at a quoted value":                  {marked(`  tag: "1.10" # {"$imagepolicy": "shop:shop:tag"}`), "shop", automation{"in a.yaml:2", "1.10"}},
		"of another policy":                  {marked(`    tag: 1.2.3 # {"$imagepolicy": "flux-system:shop-cart:tag"}`), "shop", automation{}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.world.scheme, tt.world.namespace = scheme, "shop"
			if diff := cmp.Diff(tt.want, tt.world.automationOf(t.Context(), tt.policy), cmp.AllowUnexported(automation{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// marked returns a file whose second line is given.
func marked(line string) world {
	return world{files: map[string][]byte{"a.yaml": []byte("spec:\n" + line + "\n")}}
}
