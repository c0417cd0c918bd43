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

const (
	ownsTag = `{"f:spec":{"f:ref":{"f:tag":{}}}}`
	ownsA   = `{"f:spec":{"f:postBuild":{"f:substitute":{"f:A":{}}}}}`
	ownsAB  = `{"f:spec":{"f:postBuild":{"f:substitute":{"f:A":{},"f:B":{}}}}}`
	ownsABC = `{"f:spec":{"f:postBuild":{"f:substitute":{"f:A":{},"f:B":{},"f:C":{}}}}}`
)

func applied(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields),
	}
}

func updated(manager, fields string) metav1.ManagedFieldsEntry {
	entry := applied(manager, fields)
	entry.Operation = metav1.ManagedFieldsOperationUpdate
	return entry
}

func TestManagerThatTookAField(t *testing.T) {
	for name, tt := range map[string]struct {
		target targets.Target
		labels map[string]string
		fields []metav1.ManagedFieldsEntry
		want   targets.Taking
	}{
		"nobody, it carries the version": {
			target: repository(fixture.MakeRepository("web").Tag("1.1.0")),
			fields: []metav1.ManagedFieldsEntry{applied("kustomize-controller", ownsTag)},
		},
		"the parent Kustomization": {
			target: repository(fixture.MakeRepository("web").Tag("0.9.0")),
			labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"},
			fields: []metav1.ManagedFieldsEntry{applied("kustomize-controller", ownsTag)},
			want: targets.Taking{
				Fields: []string{"spec.ref.tag"}, Managers: []string{"kustomize-controller"}, Applied: true,
				Parent: targets.Parent{
					Kind: "Kustomization", Name: "flux-system/apps",
					Remedy: "remove it from the manifest that this Kustomization applies, or name it in its spec.ignore",
				},
			},
		},
		"somebody else, although there is a parent": {
			target: repository(fixture.MakeRepository("web").Tag("0.9.0")),
			labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"},
			fields: []metav1.ManagedFieldsEntry{updated("kubectl-edit", ownsTag)},
			want:   targets.Taking{Fields: []string{"spec.ref.tag"}, Managers: []string{"kubectl-edit"}},
		},
		"another controller under our name": {
			target: repository(fixture.MakeRepository("web").Tag("0.9.0")),
			fields: []metav1.ManagedFieldsEntry{applied(write.FieldManager, ownsTag)},
			want:   targets.Taking{Fields: []string{"spec.ref.tag"}, Managers: []string{write.FieldManager}, Applied: true},
		},
		"a writer that leaves no name": {
			target: repository(fixture.MakeRepository("web")),
			fields: []metav1.ManagedFieldsEntry{updated(write.FieldManager, ownsTag), applied("kustomize-controller", `{"f:spec":{"f:url":{}}}`)},
			want:   targets.Taking{Fields: []string{"spec.ref.tag"}},
		},
		"two managers of two variables, and not of a third that carries the version": {
			target: kustomization(fixture.MakeKustomization("web").DrivenBy("shop", "A").DrivenBy("shop", "B").DrivenBy("shop", "C").
				Substitute("A", "0.9.0").Substitute("B", "0.9.0").Substitute("C", "1.1.0")),
			fields: []metav1.ManagedFieldsEntry{applied("terraform", ownsAB), updated("argocd", ownsABC)},
			want: targets.Taking{
				Fields:   []string{"spec.postBuild.substitute.A", "spec.postBuild.substitute.B"},
				Managers: []string{"argocd", "terraform"}, Applied: true,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			tt.target.Object().SetLabels(tt.labels)
			tt.target.Object().SetManagedFields(tt.fields)
			got := tt.target.Taken(byTag("1.1.0"))
			g.Expect(got).To(Equal(tt.want))
		})
	}
}
