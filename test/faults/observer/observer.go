// SPDX-License-Identifier: Apache-2.0

// Package observer checks the Rollout controller from outside. It watches the API server
// over connections of its own, puts every state of every object in order, and checks each
// state against the promises. It does not know how the controller keeps them.
package observer

import (
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/faults/record"
)

// Observer records every state of Rollouts, HealthChecks and targets while its test runs.
type Observer struct {
	*record.Recorder
	t testing.TB
}

// Watch begins to observe all namespaces, starting with the present state. It continues
// after the API server was away.
func Watch(tb testing.TB, plane *controlplane.ControlPlane) *Observer {
	tb.Helper()
	return &Observer{t: tb, Recorder: record.Watch(tb, plane, "", &v1alpha1.RolloutList{}, &v1alpha1.HealthCheckList{},
		&sourcev1.OCIRepositoryList{}, &kustomizev1.KustomizationList{})}
}

// Findings checks all states so far.
func (o *Observer) Findings() *Findings {
	o.t.Helper()
	return Judge(o.Sights())
}

// Holds fails the test if a promise was broken so far, and returns the found.
func (o *Observer) Holds() *Findings {
	o.t.Helper()
	found := o.Findings()
	for _, broken := range found.Broken {
		o.t.Error(broken)
	}
	return found
}
