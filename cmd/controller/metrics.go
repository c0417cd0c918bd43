// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fluxrollouts/rollout-controller/internal/metrics"
)

// ownMetrics adds the project's metrics to those of controller-runtime, which
// are served at --metrics-bind-address. The reader is the reconcilers' cache.
func ownMetrics(objects client.Reader) (*metrics.Rollouts, *metrics.Durations, error) {
	counted, timed := metrics.NewRollouts(time.Now), metrics.NewDurations(time.Now, objects)
	err := errors.Join(
		runtimemetrics.Registry.Register(metrics.Build(version)),
		runtimemetrics.Registry.Register(counted),
		runtimemetrics.Registry.Register(timed))
	return counted, timed, err
}
