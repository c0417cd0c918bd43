// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// approvals shows promotions past approvals that are missing, and whether approvals count.
type approvals struct {
	overrides prometheus.Counter
	verified  *prometheus.Desc
}

func newApprovals() approvals {
	return approvals{
		overrides: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "rollout_overrides_total",
			Help: "Promotions that went past approvals that were missing.",
		}),
		verified: prometheus.NewDesc("rollout_approval_identity_verified",
			"1 if the API server vouches for the names in approvals, 0 if approvals count for nothing; absent if no gate asks for any.", nil, nil),
	}
}

func (a *approvals) recorded(pass Pass) {
	if record := pass.Stored.Current().Approval; pass.Decision.Action.Promotes() && record != nil && record.Outcome == v1alpha1.OutcomeOverridden {
		a.overrides.Inc()
	}
}

// Describe sends the descriptions of the metrics.
func (a *approvals) Describe(descriptions chan<- *prometheus.Desc) {
	a.overrides.Describe(descriptions)
	descriptions <- a.verified
}

func (a *approvals) collect(metrics chan<- prometheus.Metric, all map[types.NamespacedName]*known) {
	a.overrides.Collect(metrics)
	asked, verified := false, 1.0
	for _, k := range all {
		if k.verified == nil {
			continue
		}
		if asked = true; !*k.verified {
			verified = 0
		}
	}
	if asked {
		metrics <- prometheus.MustNewConstMetric(a.verified, prometheus.GaugeValue, verified)
	}
}
