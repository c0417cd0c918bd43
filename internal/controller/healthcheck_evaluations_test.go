// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/kustomization"
)

func TestTheFirstEvaluationIsImmediateAndTheNextKeepsThePace(t *testing.T) {
	g := NewWithT(t)
	key, now := types.NamespacedName{Namespace: "shop", Name: "web"}, time.Unix(1000, 0)
	e := &evaluations{}
	g.Expect(e.untilNextEvaluation(key, now)).To(BeZero())
	e.begin(key, now)
	g.Expect(e.untilNextEvaluation(key, now.Add(300*time.Millisecond))).To(Equal(700 * time.Millisecond))
	g.Expect(e.untilNextEvaluation(key, now.Add(time.Hour))).To(BeZero())
	g.Expect(e.untilNextEvaluation(key, now.Add(-time.Hour))).To(Equal(time.Second), "the clock was set back")
	e.forget(key)
	g.Expect(e.untilNextEvaluation(key, now)).To(BeZero())
}

func TestAnEventIsNewsUntilAnEvaluationHasSeenIt(t *testing.T) {
	g := NewWithT(t)
	key := types.NamespacedName{Namespace: "shop", Name: "web"}
	k := &kustomizev1.Kustomization{Status: kustomizev1.KustomizationStatus{History: meta.History{{Digest: "a"}}}}
	e := &evaluations{}
	g.Expect(e.restsOn(key, k)).To(BeFalse())
	result := health.Pending("waiting")
	result.Basis = kustomization.Basis(k, false)
	e.found(key, result)
	g.Expect(e.restsOn(key, k)).To(BeTrue())
	e.begin(key, time.Unix(1000, 0))
	g.Expect(e.restsOn(key, k)).To(BeFalse(), "while it looks, it may have looked already")
}
