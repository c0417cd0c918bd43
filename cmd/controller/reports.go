// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"

	fluxfeatures "github.com/fluxcd/pkg/runtime/features"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxrollouts/rollout-controller/internal/registry"
	"github.com/fluxrollouts/rollout-controller/internal/registry/fetch"
	"github.com/fluxrollouts/rollout-controller/internal/registry/publish"
	"github.com/fluxrollouts/rollout-controller/internal/report"
)

// reportOptions say how environments report to other clusters, and read their reports.
type reportOptions struct {
	clusterName string
	takeOver    string
	signingKey  string
	trustedKeys string
	qps         float64
	burst       int
}

func (o *reportOptions) bind(flags *flag.FlagSet) {
	flags.StringVar(&o.clusterName, "cluster-name", "", "The name of this cluster in the reports of its Environments, and in spec.upstreams[].cluster of those in other clusters. Required to publish reports.")
	flags.StringVar(&o.takeOver, "take-over-reports-of", "", "The UID (of the namespace kube-system) of a cluster that is gone, whose reports this cluster continues. The message of ReportTaken names it. Needs --cluster-name.")
	flags.StringVar(&o.signingKey, "signing-key-secret", "", "The Secret in the controller's own namespace whose identity.key signs the reports: PEM, PKCS#8, Ed25519 or ECDSA on P-256. Needs --cluster-name.")
	flags.StringVar(&o.trustedKeys, "trusted-keys-secret", "", "The Secret in the controller's own namespace with the public keys that reports of other clusters are verified with, each in PEM as CLUSTER.pub. Environments with backend.verify have their own.")
	flags.Float64Var(&o.qps, "registry-qps", 5, "The most requests per second to one registry for reports; 0 sets no limit. Requests for metadata of releases do not count.")
	flags.IntVar(&o.burst, "registry-burst", 20, "The most such requests at once, with --registry-qps.")
}

func (o *options) completeReports(*flag.FlagSet) error {
	r := o.reports
	if err := r.checkCluster(); err != nil {
		return err
	}
	switch {
	case (r.signingKey != "" || r.trustedKeys != "") && o.namespace == "":
		return fmt.Errorf("--signing-key-secret and --trusted-keys-secret need the environment variable %s, which names their namespace", runtimeNamespace)
	case r.qps < 0, r.qps > 0 && r.burst < 1:
		return fmt.Errorf("--registry-qps must not be negative, and --registry-burst must be at least 1")
	}
	return nil
}

// checkCluster returns what is wrong with the flags that say who signs.
func (o reportOptions) checkCluster() error {
	switch {
	case o.clusterName != "" && !report.IsCluster(o.clusterName):
		return fmt.Errorf(`--cluster-name: give a name of letters, digits, "-" and "_", of at most 253 characters, and not "any"`)
	case o.takeOver != "" && (o.clusterName == "" || !publish.IsClusterUID(o.takeOver)):
		return fmt.Errorf("--take-over-reports-of: give the UID of the namespace kube-system of the old cluster, and --cluster-name")
	case o.signingKey != "" && o.clusterName == "":
		return fmt.Errorf("--signing-key-secret needs --cluster-name, which is part of the reports that it signs")
	}
	return nil
}

// ownSecret returns a Secret in the controller's own namespace; nothing if it is not named.
func (o *options) ownSecret(name string) types.NamespacedName {
	if name == "" {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: o.namespace, Name: name}
}

// reports are what Environments say to other clusters, and what is read from there. They
// are nil if the feature is disabled, or if nobody here needs them.
type reports struct {
	store     *fetch.Store
	publisher *publish.Publisher
}

func (w wiring) newReports() (reports, error) {
	enabled, err := fluxfeatures.Enabled(environmentReports)
	if needed := w.starts[rolloutController] || w.starts[environmentController]; err != nil || !enabled || !needed {
		return reports{}, err
	}
	reader, err := w.registryReader()
	if err != nil {
		return reports{}, err
	}
	in := registry.NewReports(reader)
	in.Limit(w.options.reports.qps, w.options.reports.burst)
	made := reports{store: fetch.New(w.GetClient(), in.Pull,
		fetch.NewKeys(w.live, w.ownSecret(w.options.reports.trustedKeys)), fetch.NewPlace(w.GetClient()), w.GetLogger().WithName("reports"))}
	if err := w.Add(made.store); err != nil {
		return reports{}, fmt.Errorf("add the store of reports: %w", err)
	}
	if !w.starts[environmentController] {
		return made, nil
	}
	made.publisher = publish.New(w.GetClient(), in.Push, in.Pull, registry.PlaceOf,
		publish.NewKey(w.live, w.ownSecret(w.options.reports.signingKey)),
		w.identity(), w.GetLogger().WithName("reports"))
	if err := w.Add(made.publisher); err != nil {
		return reports{}, fmt.Errorf("add the publisher of reports: %w", err)
	}
	return made, nil
}

// identity is who signs the reports.
func (w wiring) identity() publish.Identity {
	r := w.options.reports
	return publish.Identity{Cluster: r.clusterName, UID: publish.ClusterUID(w.live), Replaces: r.takeOver}
}
