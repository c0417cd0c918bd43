// SPDX-License-Identifier: Apache-2.0

package healthcheck

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/kustomization"
)

func TestEventIsAChangeUntilAnEvaluationHasSeenIt(t *testing.T) {
	g := NewWithT(t)
	key := types.NamespacedName{Namespace: "shop", Name: "web"}
	k := &kustomizev1.Kustomization{Status: kustomizev1.KustomizationStatus{History: meta.History{{Digest: "a"}}}}
	e := &evaluations{}
	g.Expect(e.restsOn(key, k)).To(BeFalse())
	result := health.Pending("waiting")
	result.Basis = kustomization.Basis(k, false)
	e.found(key, result)
	g.Expect(e.restsOn(key, k)).To(BeTrue())
	e.begin(key)
	g.Expect(e.restsOn(key, k)).To(BeFalse(), "while it looks, it may have looked already")
}
