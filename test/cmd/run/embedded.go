// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// invitation is printed when everything runs.
const invitation = `
The controller runs against a control plane of its own, with Flux and simulated Pods.
In a second terminal:

   export KUBECONFIG=%s
   kubectl get rollouts -A

   registry   %s, which needs no login
   log        %s

Press Ctrl-C to stop everything. Nothing is kept.
`

// runEmbedded starts a control plane, and the controller with its shipped rights.
func runEmbedded(ctx context.Context, program string, args []string) (err error) {
	fmt.Println("There is no kubeconfig context: starting a control plane with etcd, the Kubernetes API, Flux and a registry.")
	plane, err := controlplane.Start(ctx, controlplane.Options{
		Workloads: true, Flux: true, ImageScanner: true, CRDPaths: []string{scenario.CRDs()}, Progress: os.Stderr,
	})
	if err != nil {
		return fmt.Errorf("start a control plane: %w", err)
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	controller, err := scenario.StartController(ctx, plane, program, nil, args...)
	if err != nil {
		return fmt.Errorf("start the controller: %w", err)
	}
	fmt.Printf(invitation, plane.Kubeconfig(), plane.Registry.Host(), controller.LogFile)
	return ended(ctx, controller.Wait(ctx))
}
