// SPDX-License-Identifier: Apache-2.0

// Command build builds parts of the control plane before they are used.
//
//	go run ./test/controlplane/cmd/build -parts all
//	go run ./test/controlplane/cmd/build -parts etcd,kube-apiserver
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/fluxrollouts/rollout-controller/test/controlplane/parts"
)

func main() {
	wanted := flag.String("parts", "demo", "parts to build: all, demo (all but kubectl, flux, notification-controller, helm-controller and what monitors), or names with commas between")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if _, err := parts.Build(ctx, os.Stdout, choose(*wanted)...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// optional lists the parts that the demo does not need.
var optional = []parts.Name{parts.Kubectl, parts.FluxCLI, parts.NotificationController, parts.HelmController, parts.KubeStateMetrics, parts.Prometheus}

func choose(wanted string) []parts.Name {
	var names []parts.Name
	switch wanted {
	case "all":
		return parts.All()
	case "demo":
		for _, name := range parts.All() {
			if !slices.Contains(optional, name) {
				names = append(names, name)
			}
		}
	default:
		for name := range strings.SplitSeq(wanted, ",") {
			names = append(names, parts.Name(strings.TrimSpace(name)))
		}
	}
	return names
}
