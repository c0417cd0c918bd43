// SPDX-License-Identifier: Apache-2.0

package metrics

import "github.com/prometheus/client_golang/prometheus"

// Build says which version runs, and, being there at all, that one does.
func Build(version string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "rollout_build_info",
		Help:        "Always 1, labelled with the version of the controller.",
		ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 })
}
