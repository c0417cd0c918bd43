// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// look is the pause between two checks whether the controller is ready. If an answer
// takes long, the pause is seldom times that long: the metrics of ten thousand Rollouts
// are work for the controller.
const (
	look   = 200 * time.Millisecond
	seldom = 5
)

// ready waits until the controller leads, has reconciled every Rollout and has no more
// work. It returns how long the process has run by then.
func (b *bench) ready(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		asked := time.Now()
		families, err := scenario.Metrics(ctx, b.program.metrics)
		took := time.Since(b.program.began)
		if err == nil && drained(families, b.rollouts) {
			return took, nil
		}
		if !b.program.Running() {
			return 0, fmt.Errorf("the controller ended before it was ready: see %s", b.program.LogFile)
		}
		if stopped := pause(ctx, max(look, seldom*time.Since(asked))); stopped != nil {
			return 0, fmt.Errorf("the controller did not become ready: %w", stopped)
		}
	}
}

// drained reports whether all Rollouts were reconciled and no work is left.
func drained(families map[string]*dto.MetricFamily, rollouts int) bool {
	reconciled := scenario.Total(scenario.Labelled(families["controller_runtime_reconcile_total"], "controller", "rollout"))
	waiting := scenario.Total(families["workqueue_depth"].GetMetric()) + scenario.Total(families["controller_runtime_active_workers"].GetMetric())
	return int(reconciled) >= rollouts && waiting == 0
}
