// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/record"
	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fluxrollouts/rollout-controller/internal/controller/statefulsetrollout"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
)

// registerCoordinators adds what orders the inside of a release.
func (w wiring) registerCoordinators(ctx context.Context) error {
	if w.starts[statefulSetController] {
		if err := w.registerStatefulSets(ctx); err != nil {
			return fmt.Errorf("set up the statefulsetrollout controller: %w", err)
		}
	}
	return nil
}

func (w wiring) registerStatefulSets(ctx context.Context) error {
	groups := metrics.NewGroups()
	if err := runtimemetrics.Registry.Register(groups); err != nil {
		return err
	}
	sets := &statefulsetrollout.Reconciler{
		Client:      w.GetClient(),
		APIReader:   w.GetAPIReader(),
		Events:      w.eventsBy(statefulSetController),
		Now:         time.Now,
		UseEviction: w.useEviction,
		Metrics:     groups,
	}
	return sets.SetupWithManager(ctx, w, w.controller())
}

// eventsBy are those of a coordinator, which is their source.
func (w wiring) eventsBy(controller string) record.EventRecorder {
	return w.GetEventRecorderFor(controller + "-controller") //nolint:staticcheck // clients of this API read core/v1 events by component, and sort them by their last time
}
