// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/controller/environment"
	"github.com/fluxrollouts/rollout-controller/internal/controller/rollout"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
)

const (
	environments = "environments"
	// environmentCRD is the name of their CRD.
	environmentCRD = environments + ".environments.kuberik.com"
)

var environmentKind = kind{
	GroupKind: schema.GroupKind{Group: environmentsv1.GroupVersion.Group, Kind: environmentsv1.EnvironmentKind},
	versions:  []string{environmentsv1.GroupVersion.Version},
	install:   ourCRDs,
}

// watchEnvironments makes Rollouts ask their Environments, if those are served and may be
// read. Their CRD is newer than Rollouts, and an older installation may lack it. A process
// that begins later finds it.
func (w wiring) watchEnvironments(ctx context.Context, rollouts *rollout.Reconciler) error {
	served, err := w.cluster.serves(environmentKind)
	if err != nil || !served {
		return err
	}
	read := right{group: environmentsv1.GroupVersion.Group, resource: environments}
	missing, err := w.cluster.lacksReading(ctx, read, w.onlyWatched())
	if err != nil {
		return err
	}
	if missing.verb != "" {
		w.GetLogger().Info("Environments are not asked",
			"because", fmt.Sprintf("this account may not %s: grant it what the manager role allows, and start again", missing))
		return nil
	}
	if !w.starts[environmentController] { // it adds the indexes otherwise
		if err := gather.IndexEnvironments(ctx, w.GetFieldIndexer()); err != nil {
			return err
		}
	}
	return rollouts.WatchEnvironments()
}

// registerEnvironments adds the controller that records what environments have proven.
func (w wiring) registerEnvironments(ctx context.Context) error {
	if err := gather.IndexEnvironments(ctx, w.GetFieldIndexer()); err != nil {
		return err
	}
	if !w.starts[rolloutController] { // it adds the index otherwise
		if err := gather.IndexSelections(ctx, w.GetFieldIndexer()); err != nil {
			return err
		}
	}
	reconciler := &environment.Reconciler{
		Client: w.GetClient(), Events: w.events(), Now: time.Now,
		NoCrossNamespaceRefs: w.refs.NoCrossNamespaceRefs, Shard: w.shard, Durations: w.timed,
		Reports: w.reports.store, Publisher: w.reports.publisher,
	}
	return reconciler.SetupWithManager(w, w.controller())
}
