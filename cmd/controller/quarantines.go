// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	quarantinecontroller "github.com/fluxrollouts/rollout-controller/internal/controller/quarantine"
	"github.com/fluxrollouts/rollout-controller/internal/controller/rollout"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
)

const (
	quarantines        = "releasequarantines"
	clusterQuarantines = "clusterreleasequarantines"
	// quarantineCRD is the name of the CRD of those that Rollouts report to.
	quarantineCRD = quarantines + ".kuberik.com"
)

var quarantineGroup = v1alpha1.GroupVersion.Group

var quarantineKinds = []kind{ownKind(v1alpha1.ReleaseQuarantineKind), ownKind(v1alpha1.ClusterReleaseQuarantineKind)}

// bindQuarantines adds the flag of quarantines.
func (o *options) bindQuarantines(flags *flag.FlagSet) {
	o.quarantineScope = quarantine.ScopeNamespace
	flags.Var(&o.quarantineScope, "quarantine-scope",
		"Which ReleaseQuarantines count for a Rollout: Namespace, those of its own namespace, or Cluster, those of all: then editors of one namespace can hold the Rollouts of all others. Cluster is refused with --no-cross-namespace-refs or --watch-all-namespaces=false. ClusterReleaseQuarantines always count.")
}

// completeQuarantines refuses a scope that this instance must not have, or cannot see.
func (o *options) completeQuarantines(*flag.FlagSet) error {
	switch {
	case o.quarantineScope != quarantine.ScopeCluster:
		return nil
	case o.refs.NoCrossNamespaceRefs:
		return errors.New("--quarantine-scope=Cluster lets ReleaseQuarantines of other namespaces count, which --no-cross-namespace-refs forbids: leave one of them out")
	case !o.allNamespaces:
		return errors.New("--quarantine-scope=Cluster needs --watch-all-namespaces: an instance that watches one namespace does not see ReleaseQuarantines of others")
	}
	return nil
}

// quarantinePlan defines how Rollouts handle quarantines.
type quarantinePlan string

const (
	reportToQuarantines quarantinePlan = "Report" // they are obeyed, and failures are reported
	obeyQuarantines     quarantinePlan = "Obey"   // they are obeyed, and a right to report is missing
	leaveQuarantines    quarantinePlan = "Leave"  // they are not served, or a right to read is missing
)

// planQuarantines returns how Rollouts handle quarantines, and which right is missing for
// more. Their CRDs are newer than Rollouts, and an older installation may lack them. A
// process that begins later finds them.
func (c cluster) planQuarantines(ctx context.Context, namespace string) (plan quarantinePlan, missing right, err error) {
	for _, kind := range quarantineKinds {
		if served, err := c.serves(kind); err != nil || !served {
			return leaveQuarantines, right{}, err
		}
	}
	for _, resource := range []string{quarantines, clusterQuarantines} {
		missing, err := c.lacksReading(ctx, right{group: quarantineGroup, resource: resource}, namespace)
		if missing.verb != "" || err != nil {
			return leaveQuarantines, missing, err
		}
	}
	missing, err = c.lacksAny(ctx, rightsOn(quarantineGroup, quarantines, "get", "create", "patch/status"), namespace)
	if missing.verb != "" || err != nil {
		return obeyQuarantines, missing, err
	}
	return reportToQuarantines, right{}, nil
}

// watchQuarantines makes Rollouts obey quarantines and report to them, as far as they can.
func (w wiring) watchQuarantines(ctx context.Context, rollouts *rollout.Reconciler) error {
	plan, missing, err := w.cluster.planQuarantines(ctx, w.onlyWatched())
	if err != nil {
		return err
	}
	if missing.verb != "" {
		lack := "failures are not reported to quarantines"
		if plan == leaveQuarantines {
			lack = "quarantines are neither obeyed nor reported to"
		}
		w.GetLogger().Info(lack, "because", fmt.Sprintf("this account may not %s: grant it what the manager role allows, and start again", missing))
	}
	if plan == leaveQuarantines {
		return nil
	}
	rollouts.QuarantinesReadOnly = plan == obeyQuarantines
	return rollouts.WatchQuarantines()
}

// registerQuarantines adds the controllers that show the state of quarantines. Recalls
// belong to an instance that watches all namespaces.
func (w wiring) registerQuarantines() error {
	counted, err := quarantineMetrics()
	if err != nil {
		return err
	}
	kinds := []bool{false}
	if w.allNamespaces {
		kinds = append(kinds, true)
	}
	for _, cluster := range kinds {
		reconciler := &quarantinecontroller.Reconciler{
			Client: w.GetClient(), Now: time.Now, Cluster: cluster, Shard: w.shard,
			Metrics: counted, Durations: w.timed,
		}
		if err := reconciler.SetupWithManager(w, w.controller()); err != nil {
			return err
		}
	}
	return nil
}
