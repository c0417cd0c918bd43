// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestAbsenceBelow(t *testing.T) {
	const again = "does not exist, although Flux has applied it: Flux creates it again "
	deleted := metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{}}
	deleted.DeletionTimestamp.Time = metav1.Now().Time
	drift := func(mode helmv2.DriftDetectionMode) *helmv2.HelmRelease {
		return &helmv2.HelmRelease{Spec: helmv2.HelmReleaseSpec{DriftDetection: &helmv2.DriftDetection{Mode: mode}}}
	}
	const upgrade = again + "at the next upgrade; set spec.driftDetection.mode: enabled on the HelmRelease to have it created before"
	for name, tt := range map[string]struct {
		by   client.Object
		want string
	}{
		"a Kustomization":                 {&kustomizev1.Kustomization{}, again + "at its next reconciliation"},
		"one that is suspended":           {&kustomizev1.Kustomization{Spec: kustomizev1.KustomizationSpec{Suspend: true}}, again + "once the Kustomization is resumed"},
		"one that is being deleted":       {&kustomizev1.Kustomization{ObjectMeta: deleted}, "does not exist: the Kustomization that has applied it is being deleted"},
		"a HelmRelease":                   {&helmv2.HelmRelease{}, upgrade},
		"one that only warns of drift":    {drift(helmv2.DriftDetectionWarn), upgrade},
		"one that corrects drift":         {drift(helmv2.DriftDetectionEnabled), again + "at its next reconciliation"},
		"a release that is being deleted": {&helmv2.HelmRelease{ObjectMeta: deleted}, "does not exist: the HelmRelease that has applied it is being deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := absenceBelow(tt.by); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
