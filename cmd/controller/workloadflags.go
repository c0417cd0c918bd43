// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"time"
)

// Flags of the program that has rolled out the pods of StatefulSets so far, zone by zone.
// They are written with one dash, which the flag package also accepts.
const (
	theirNamespace = "kubernetes.namespace"
	theirPort      = "server.port"
)

// bindWorkloads adds the flags of the controllers that order the steps within a release:
// those of the first coordinator of Deployments, and those of the first one of
// StatefulSets.
func (o *options) bindWorkloads(flags *flag.FlagSet) {
	flags.StringVar(&o.leaseID, "leader-election-id", leaseName, "The name of the Lease; with --watch-label-selector its hash is added.")
	flags.String("webhook-cert-dir", "", "The same as --webhook-cert-path.")
	flags.BoolVar(&o.useEviction, "use-eviction", false, "Replace the pods of StatefulSets by eviction, so that PodDisruptionBudgets hold; needs the right to create pods/eviction.")
	flags.BoolVar(&o.unpauseAndStop, "release-held", false, "Run no controller: stop that of "+runtimeName+", unpause every Deployment that waits for its turn, and end. For the uninstallation.")
	flags.StringVar(&o.onlyNamespace, theirNamespace, "", "The only namespace that is watched. Without --controllers statefulsetrollout alone runs then.")
	flags.IntVar(&o.serverPort, theirPort, 8001, "The port of /metrics and /ready over plain HTTP, if given, or with -"+theirNamespace+".")
	flags.Duration("reconcile.interval", 5*time.Second, "Accepted for compatibility, without effect.")
	flags.String("log.level", "info", "The same as --log-level; warn is error.")
	flags.String("log.format", "json", "The same as --log-encoding; logfmt is console.")
}

// theirWords are values that have another name in this program.
var theirWords = map[string]string{"warn": "error", "logfmt": "console"}

// completeNamespace applies -kubernetes.namespace. It has the same meaning as in the
// program that it comes from, unless other flags override it.
func (o *options) completeNamespace(flags *flag.FlagSet) error {
	if o.onlyNamespace == "" {
		return nil
	}
	if isGiven(flags, "watch-all-namespaces") && o.allNamespaces {
		return fmt.Errorf("-%s=%s contradicts --watch-all-namespaces=true: give one of them", theirNamespace, o.onlyNamespace)
	}
	if o.namespace == "" {
		o.namespace = o.onlyNamespace
	}
	o.allNamespaces = false
	if !isGiven(flags, "controllers") {
		o.controllers = controllerList{statefulSetController}
	}
	return nil
}

// completeServer makes -server.port another way to set the address of the metrics, over
// plain HTTP.
func (o *options) completeServer(flags *flag.FlagSet) error {
	o.servesReady = isGiven(flags, theirPort) || o.onlyNamespace != "" && !isGiven(flags, "metrics-bind-address")
	if !o.servesReady {
		return nil
	}
	address := fmt.Sprintf(":%d", o.serverPort)
	var errs []error
	if isGiven(flags, "metrics-bind-address") && o.metricsAddr != address {
		errs = append(errs, fmt.Errorf("-%s=%d contradicts --metrics-bind-address=%s, which is where metrics are served, too: give one of them",
			theirPort, o.serverPort, o.metricsAddr))
	}
	if isGiven(flags, "metrics-secure") && o.metricsSecure {
		errs = append(errs, fmt.Errorf("-%s=%d serves plain HTTP, which contradicts --metrics-secure=true", theirPort, o.serverPort))
	}
	o.metricsAddr, o.metricsSecure = address, false
	return errors.Join(errs...)
}
