// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/controller/quarantine"
	"github.com/fluxrollouts/rollout-controller/internal/controller/rollout"
)

const (
	quarantines        = "releasequarantines"
	clusterQuarantines = "clusterreleasequarantines"
	// quarantineCRD is the name of the CRD of those that Rollouts report to.
	quarantineCRD = quarantines + ".kuberik.com"
)

var quarantineKinds = []kind{quarantineKind(v1alpha1.ReleaseQuarantineKind), quarantineKind(v1alpha1.ClusterReleaseQuarantineKind)}

func quarantineKind(name string) kind {
	return kind{
		GroupKind: schema.GroupKind{Group: v1alpha1.GroupVersion.Group, Kind: name},
		versions:  []string{v1alpha1.GroupVersion.Version},
		install:   ourCRDs,
	}
}

// quarantineScope is the value of --quarantine-scope.
type quarantineScope string

const (
	// scopeNamespace lets only the ReleaseQuarantines of its own namespace count for a
	// Rollout.
	scopeNamespace quarantineScope = "Namespace"
	// scopeCluster lets those of all namespaces count.
	scopeCluster quarantineScope = "Cluster"
)

// String returns the scope.
func (s *quarantineScope) String() string { return string(*s) }

// Set reads the scope.
func (s *quarantineScope) Set(value string) error {
	switch quarantineScope(value) {
	case scopeNamespace, scopeCluster:
		*s = quarantineScope(value)
		return nil
	}
	return fmt.Errorf("it is %s or %s", scopeNamespace, scopeCluster)
}

// completeQuarantines refuses a scope that contradicts the lockdown of references.
func (o *options) completeQuarantines(*flag.FlagSet) error {
	if o.quarantineScope == scopeCluster && o.refs.NoCrossNamespaceRefs {
		return errors.New("--quarantine-scope=Cluster lets objects of other namespaces count, which --no-cross-namespace-refs does not allow: leave one of them out")
	}
	return nil
}

// watchQuarantines makes Rollouts obey quarantines and report to them, if both kinds are
// served and may be read. Their CRDs are newer than Rollouts.
func (w wiring) watchQuarantines(ctx context.Context, rollouts *rollout.Reconciler) error {
	for _, kind := range quarantineKinds {
		if served, err := w.cluster.serves(kind); err != nil || !served {
			return err
		}
	}
	for _, resource := range []string{quarantines, clusterQuarantines} {
		missing, err := w.cluster.lacksReading(ctx, right{group: v1alpha1.GroupVersion.Group, resource: resource}, w.onlyWatched())
		if err != nil {
			return err
		}
		if missing.verb != "" {
			w.GetLogger().Info("quarantines are neither obeyed nor reported to",
				"because", fmt.Sprintf("this account may not %s: grant it what the manager role allows, and start again", missing))
			return nil
		}
	}
	return rollouts.WatchQuarantines()
}

// registerQuarantines adds the controllers that show the state of quarantines.
func (w wiring) registerQuarantines() error {
	for _, cluster := range []bool{false, true} {
		reconciler := &quarantine.Reconciler{Client: w.GetClient(), Now: time.Now, Cluster: cluster, Shard: w.shard, Durations: w.timed}
		if err := reconciler.SetupWithManager(w, w.controller()); err != nil {
			return err
		}
	}
	return nil
}
