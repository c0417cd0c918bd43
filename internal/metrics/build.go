// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// Build returns a metric that shows which version runs. Its presence shows that the
// controller runs.
func Build(version string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "rollout_build_info",
		Help:        "Always 1, labelled with the version of the controller.",
		ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 })
}
