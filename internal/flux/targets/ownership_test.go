// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/write"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestSurplusOwnership(t *testing.T) {
	shared := func() *fixture.KustomizationBuilder {
		return fixture.MakeKustomization("web").DrivenBy("shop", "A").DrivenBy("cart", "B")
	}
	for name, tt := range map[string]struct {
		target targets.Target
		fields []metav1.ManagedFieldsEntry
		want   bool
	}{
		"nothing": {target: kustomization(shared())},
		"not the variables of any Rollout": {
			target: kustomization(shared()), fields: []metav1.ManagedFieldsEntry{applied(write.FieldManager, ownsAB)},
		},
		"not the maps around them": {
			target: kustomization(shared()),
			fields: []metav1.ManagedFieldsEntry{updated(write.FieldManager,
				`{"f:spec":{"f:postBuild":{".":{},"f:substitute":{".":{},"f:A":{}}}}}`)},
		},
		"a variable of the user": {
			target: kustomization(shared()), fields: []metav1.ManagedFieldsEntry{applied(write.FieldManager, ownsABC)}, want: true,
		},
		"a variable whose annotation has gone": {
			target: kustomization(shared()), fields: []metav1.ManagedFieldsEntry{updated(write.FieldManager, ownsABC)}, want: true,
		},
		"not what others own": {
			target: kustomization(shared()), fields: []metav1.ManagedFieldsEntry{applied("kustomize-controller", ownsABC)},
		},
		"not what cannot be read": {
			target: kustomization(shared()), fields: []metav1.ManagedFieldsEntry{applied(write.FieldManager, `[]`)},
		},
		"not the tag of an OCIRepository": {
			target: repository(fixture.MakeRepository("web").DrivenBy("shop")),
			fields: []metav1.ManagedFieldsEntry{applied(write.FieldManager, ownsTag)},
		},
		"the rest of its reference": {
			target: repository(fixture.MakeRepository("web").DrivenBy("shop")),
			fields: []metav1.ManagedFieldsEntry{applied(write.FieldManager, `{"f:spec":{"f:ref":{"f:tag":{},"f:semver":{}}}}`)},
			want:   true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.target.Object().SetManagedFields(tt.fields)
			NewWithT(t).Expect(tt.target.OwnsTooMuch()).To(Equal(tt.want))
		})
	}
}

func TestKeepOwnFields(t *testing.T) {
	ours, ofStatus := updated(write.FieldManager, ownsTag), updated(write.FieldManager, ownsTag)
	ofStatus.Subresource = "status"
	web := repository(fixture.MakeRepository("web"))
	web.Object().SetManagedFields([]metav1.ManagedFieldsEntry{applied("kustomize-controller", ownsTag), ours, ofStatus})
	targets.KeepOwnFields(web.Object())
	NewWithT(t).Expect(web.Object().GetManagedFields()).To(Equal([]metav1.ManagedFieldsEntry{ours}))
}
