// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/controller/clustergate"
	"github.com/fluxrollouts/rollout-controller/internal/controller/rollout"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
)

const (
	rolloutApprovals = "rolloutapprovals"
	clusterGates     = "clusterrolloutgates"
	// clusterGateCRD is the name of the CRD whose arrival begins everything about approvals.
	clusterGateCRD = clusterGates + ".kuberik.com"
)

// approvalKinds are newer than Rollouts. An older installation may lack them, and then nothing
// can ask for approvals.
var approvalKinds = []kind{ownKind(v1alpha1.RolloutApprovalKind), ownKind(v1alpha1.ClusterRolloutGateKind)}

func ownKind(name string) kind {
	return kind{
		GroupKind: schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: name},
		versions:  []string{v1alpha1.GroupVersion.Version},
		install:   ourCRDs,
	}
}

// watchApprovals makes Rollouts obey ClusterRolloutGates and count approvals, where they are
// served. Without the right to read them the controller does not start: it would promote past
// gates that it cannot see.
func (w wiring) watchApprovals(ctx context.Context, rollouts *rollout.Reconciler) error {
	for _, kind := range approvalKinds {
		if served, err := w.cluster.serves(kind); err != nil || !served {
			return err
		}
	}
	for _, resource := range []string{rolloutApprovals, clusterGates} {
		missing, err := w.cluster.lacksReading(ctx, right{group: v1alpha1.GroupVersion.Group, resource: resource}, w.onlyWatched())
		if err != nil {
			return err
		}
		if missing.verb != "" {
			return fmt.Errorf("this account may not %s, and would promote past gates that it cannot see: grant it what the manager role allows", missing)
		}
	}
	if err := gather.IndexApprovals(ctx, w.GetFieldIndexer()); err != nil {
		return err
	}
	return rollouts.WatchApprovals()
}

// registerClusterGates adds the controller that shows the state of ClusterRolloutGates.
func (w wiring) registerClusterGates() error {
	gates := &clustergate.Reconciler{Client: w.GetClient(), Now: time.Now, Shard: w.shard, Durations: w.timed}
	return gates.SetupWithManager(w, w.controller())
}
