// SPDX-License-Identifier: Apache-2.0

// Command run runs the controller as it is in the working tree, until Ctrl-C: against the
// cluster of the current kubeconfig context, or, if there is none, against an embedded
// control plane with Flux and a registry, which it starts and whose kubeconfig it prints.
//
//	go run ./test/cmd/run
//	go run ./test/cmd/run -- --log-level=debug   with flags for the controller
//
// In a cluster, the CRDs must be installed; the controller acts with the rights of the
// kubeconfig.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

func main() {
	embedded := flag.Bool("embedded", false, "Start an embedded control plane even if there is a kubeconfig context.")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *embedded, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, embedded bool, args []string) error {
	program, err := scenario.BuildController(ctx, os.Stderr)
	if err != nil {
		return err
	}
	name, err := currentContext()
	switch {
	case err != nil:
		return err
	case name == "" || embedded:
		return runEmbedded(ctx, program, args)
	}
	fmt.Printf("Running the controller against the kubeconfig context %q. Press Ctrl-C to stop it.\n", name)
	return runIn(ctx, program, args)
}

// currentContext is the current context of the kubeconfig; empty if there is none.
func currentContext() (string, error) {
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return "", fmt.Errorf("read the kubeconfig: %w", err)
	}
	if _, exists := config.Contexts[config.CurrentContext]; !exists {
		return "", nil
	}
	return config.CurrentContext, nil
}

// ended leaves out that a program was stopped by Ctrl-C.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		return errors.New("the controller has ended")
	}
	return fmt.Errorf("the controller has ended: %w", err)
}
