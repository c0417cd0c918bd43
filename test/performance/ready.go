// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// look is how often the controller is asked whether it is ready, and seldom if it
// takes long to answer: its metrics of ten thousand Rollouts are work for it.
const (
	look   = 200 * time.Millisecond
	seldom = 5
)

// ready waits until the controller leads, has looked at every Rollout and has no
// more to do. It returns how long the process has run by then.
func (b *bench) ready(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		asked := time.Now()
		families, err := b.program.families(ctx)
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

// families reads the program's metrics.
func (p *program) families(ctx context.Context) (map[string]*dto.MetricFamily, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.metrics+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	return parser.TextToMetricFamilies(response.Body)
}

// drained reports whether as many Rollouts were reconciled as there are, and
// nothing is left to do.
func drained(families map[string]*dto.MetricFamily, rollouts int) bool {
	reconciled := sum(families["controller_runtime_reconcile_total"], "rollout")
	waiting := sum(families["workqueue_depth"], "") + sum(families["controller_runtime_active_workers"], "")
	return int(reconciled) >= rollouts && waiting == 0
}

// sum adds up the values of a metric, for one controller or for all.
func sum(family *dto.MetricFamily, controller string) float64 {
	total := 0.0
	for _, m := range family.GetMetric() {
		if controller == "" || labelled(m, controller) {
			total += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return total
}

func labelled(m *dto.Metric, controller string) bool {
	for _, label := range m.GetLabel() {
		if label.GetName() == "controller" && label.GetValue() == controller {
			return true
		}
	}
	return false
}
