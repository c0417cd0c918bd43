// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fluxrollouts/rollout-controller/internal/metrics"
)

// ownMetrics adds the project's metrics to those of controller-runtime, which are served
// at --metrics-bind-address. The reader is the reconcilers' cache.
func ownMetrics(objects client.Reader) (*metrics.Durations, error) {
	timed := metrics.NewDurations(time.Now, objects)
	return timed, errors.Join(
		runtimemetrics.Registry.Register(metrics.Build(version)),
		runtimemetrics.Registry.Register(timed))
}

// rolloutMetrics adds the metrics of Rollouts.
func rolloutMetrics() (*metrics.Rollouts, error) {
	counted := metrics.NewRollouts(time.Now)
	return counted, runtimemetrics.Registry.Register(counted)
}

// quarantineMetrics adds the metrics of quarantines.
func quarantineMetrics() (*metrics.Quarantines, error) {
	counted := metrics.NewQuarantines()
	return counted, runtimemetrics.Registry.Register(counted)
}
