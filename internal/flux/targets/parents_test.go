// SPDX-License-Identifier: Apache-2.0

package targets_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

func TestTakingNamesWhatAppliesTheTarget(t *testing.T) {
	labelled := func(group string) map[string]string {
		return map[string]string{group + "/name": "apps", group + "/namespace": "platform"}
	}
	const set = "spec.ref.tag is overwritten by "
	for name, tt := range map[string]struct {
		manager             string
		labels, annotations map[string]string
		want                string
	}{
		"a Kustomization": {
			manager: "kustomize-controller", labels: labelled("kustomize.toolkit.fluxcd.io"),
			want: set + "kustomize-controller for Kustomization platform/apps: remove it from the manifest that this Kustomization applies, or name it in its spec.ignore",
		},
		"a HelmRelease": {
			manager: "helm-controller", labels: labelled("helm.toolkit.fluxcd.io"),
			want: set + "helm-controller for HelmRelease platform/apps: leave it out of the templates of its chart",
		},
		"a ResourceSet": {
			manager: "flux-operator", labels: labelled("resourceset.fluxcd.controlplane.io"),
			want: set + "flux-operator for ResourceSet platform/apps: leave it out of the template of this ResourceSet",
		},
		"a FluxInstance": {
			manager: "flux-operator", labels: labelled("fluxcd.controlplane.io"),
			want: set + "flux-operator for FluxInstance platform/apps: it comes from spec.sync of this FluxInstance; annotate another object with the name of the Rollout",
		},
		"an Application, by the annotation": {
			manager: "argocd-controller", annotations: map[string]string{"argocd.argoproj.io/tracking-id": "apps:source.toolkit.fluxcd.io/OCIRepository:" + fixture.Namespace + "/web"},
			want: set + "argocd-controller for Application apps: remove it from the manifest in Git, or name it in spec.ignoreDifferences with the sync option RespectIgnoreDifferences=true",
		},
		"an Application, by the label": {
			manager: "argocd-controller", labels: map[string]string{"app.kubernetes.io/instance": "apps"},
			want: set + "argocd-controller for Application apps: remove it from the manifest in Git, or name it in spec.ignoreDifferences with the sync option RespectIgnoreDifferences=true",
		},
		"none, if the labels are of another manager": {
			manager: "kubectl-edit", labels: labelled("resourceset.fluxcd.controlplane.io"),
			want: set + "kubectl-edit: remove it from what that field manager writes",
		},
		"none, without labels": {
			manager: "flux-operator",
			want:    set + "flux-operator: remove it from what that field manager writes",
		},
		"none, if the annotation is of another object": {
			manager: "argocd-controller", annotations: map[string]string{"argocd.argoproj.io/tracking-id": "apps:apps/Deployment:shop/web"},
			want: set + "argocd-controller: remove it from what that field manager writes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			target := repository(fixture.MakeRepository("web").Tag("0.9.0"))
			target.Object().SetLabels(tt.labels)
			target.Object().SetAnnotations(tt.annotations)
			target.Object().SetManagedFields([]metav1.ManagedFieldsEntry{applied(tt.manager, ownsTag)})
			if got := target.Taken(byTag("1.1.0")).String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
