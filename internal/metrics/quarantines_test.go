// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
)

func TestQuarantinesAreCountedByPhase(t *testing.T) {
	all := metrics.NewQuarantines()
	own, recall := types.NamespacedName{Namespace: "shop", Name: "sha256-1"}, types.NamespacedName{Name: "sha256-1"}
	all.Observe(own, v1alpha1.QuarantineHeld)
	all.Observe(types.NamespacedName{Namespace: "cart", Name: "sha256-1"}, v1alpha1.QuarantineHeld)
	all.Observe(recall, v1alpha1.QuarantineHeld)
	want := map[string]float64{"rollout_quarantines{phase=Held}": 3}
	if diff := cmp.Diff(want, series(t, all)); diff != "" {
		t.Error(diff)
	}

	all.Observe(own, v1alpha1.QuarantineEnded)
	all.Forget(recall)
	want = map[string]float64{"rollout_quarantines{phase=Held}": 1, "rollout_quarantines{phase=Ended}": 1}
	if diff := cmp.Diff(want, series(t, all)); diff != "" {
		t.Error("later:", diff)
	}
}

func TestEveryPhaseIsShownWithoutQuarantines(t *testing.T) {
	families := gathered(t, metrics.NewQuarantines())
	if len(families) != 1 || len(families[0].GetMetric()) != 2 {
		t.Errorf("there are %v", families)
	}
}

func TestQuarantinesNeedNoMetrics(*testing.T) {
	var none *metrics.Quarantines
	none.Observe(types.NamespacedName{}, v1alpha1.QuarantineEnded)
	none.Forget(types.NamespacedName{})
}
