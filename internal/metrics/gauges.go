// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// none is the state of a Rollout that has not promoted anything yet. It also stands for
// states that this version does not know.
const none v1alpha1.BakeStatus = "None"

var (
	bakeStates = []v1alpha1.BakeStatus{
		none, v1alpha1.BakeDeploying, v1alpha1.BakeInProgress, v1alpha1.BakeSucceeded, v1alpha1.BakeFailed, v1alpha1.BakeCancelled,
	}
	readyStates  = []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}
	targetStates = [...]v1alpha1.TargetState{
		v1alpha1.TargetPending, v1alpha1.TargetApplied, v1alpha1.TargetFailed, v1alpha1.TargetConflict,
	}
)

// summary is the part of the gauges that one Rollout contributes.
type summary struct {
	state
	targets targets
}

// targets counts targets by state, in the order of targetStates.
type targets [len(targetStates)]int32

type state struct {
	bake  v1alpha1.BakeStatus
	ready metav1.ConditionStatus
}

func summarise(status *v1alpha1.RolloutStatus) summary {
	s := summary{state: state{none, metav1.ConditionUnknown}}
	if len(status.History) > 0 && slices.Contains(bakeStates, status.History[0].State()) {
		s.bake = status.History[0].State()
	}
	if ready := apimeta.FindStatusCondition(status.Conditions, v1alpha1.ReadyCondition); ready != nil {
		s.ready = ready.Status
	}
	for i := range status.Targets {
		if known := slices.Index(targetStates[:], status.Targets[i].State); known >= 0 {
			s.targets[known]++
		}
	}
	return s
}

// gauges shows how many Rollouts and targets are in which state.
type gauges struct {
	rollouts *prometheus.Desc
	targets  *prometheus.Desc
}

func newGauges() gauges {
	return gauges{
		rollouts: prometheus.NewDesc("rollout_rollouts",
			"Rollouts that are not suspended, by the state of their newest promotion and by their Ready condition.",
			[]string{"bake_status", "ready"}, nil),
		targets: prometheus.NewDesc("rollout_targets",
			"Flux objects that Rollouts drive, by how far they are with the version that they should carry.",
			[]string{"state"}, nil),
	}
}

// Describe sends the descriptions of the metrics.
func (g *gauges) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- g.rollouts
	descriptions <- g.targets
}

func (g *gauges) collect(metrics chan<- prometheus.Metric, all map[types.NamespacedName]*known) {
	rollouts, sum := map[state]int{}, targets{}
	for _, k := range all {
		rollouts[k.summary.state]++
		for i, count := range k.summary.targets {
			sum[i] += count
		}
	}
	for _, bake := range bakeStates {
		for _, ready := range readyStates {
			metrics <- prometheus.MustNewConstMetric(g.rollouts, prometheus.GaugeValue,
				float64(rollouts[state{bake, ready}]), string(bake), string(ready))
		}
	}
	for i, s := range targetStates {
		metrics <- prometheus.MustNewConstMetric(g.targets, prometheus.GaugeValue, float64(sum[i]), string(s))
	}
}
