// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxrollouts/rollout-controller/internal/flux/inventory"
)

func TestInventoryEntryNamesAnObject(t *testing.T) {
	for id, want := range map[string]inventory.Object{
		"shop_web_apps_Deployment": {"shop", "web", schema.GroupKind{Group: "apps", Kind: "Deployment"}},
		"shop_web__Service":        {"shop", "web", schema.GroupKind{Kind: "Service"}},
		"_shop__Namespace":         {"", "shop", schema.GroupKind{Kind: "Namespace"}},
		"_system__reader_rbac.authorization.k8s.io_ClusterRole": {
			"", "system:reader", schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
		},
	} {
		t.Run(id, func(t *testing.T) {
			g := NewWithT(t)
			got, err := inventory.Parse(id)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(want))
		})
	}
}

func TestMalformedInventoryEntryIsNamed(t *testing.T) {
	for _, id := range []string{"", "_", "__", "___", "shop_web", "shop_web_Service", "shop__apps_Deployment", "shop_web_apps_"} {
		t.Run(id, func(t *testing.T) {
			_, err := inventory.Parse(id)
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring("malformed")))
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("shop_web_apps_Deployment")
	f.Add("_a__b__C")
	f.Fuzz(func(t *testing.T, id string) {
		got, err := inventory.Parse(id)
		if err == nil && (got.Name == "" || got.Kind.Kind == "") {
			t.Errorf("%q reads as %v", id, got)
		}
	})
}

func TestKindsThatAreAlwaysCurrentHaveNoHealth(t *testing.T) {
	for kind, want := range map[schema.GroupKind]bool{
		{Kind: "Secret"}: false,
		{Group: "rbac.authorization.k8s.io", Kind: "Role"}: false,
		{Group: "example.com", Kind: "Secret"}:             true,
		{Group: "apps", Kind: "Deployment"}:                true,
	} {
		t.Run(kind.String(), func(t *testing.T) {
			NewWithT(t).Expect(inventory.HasHealth(kind)).To(Equal(want))
		})
	}
}
