// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fluxrollouts/rollout-controller/internal/controller/rollout"
	"github.com/fluxrollouts/rollout-controller/internal/flux/notify"
)

// addNotifications adds the sender of Flux events if there is an address for them.
func addNotifications(mgr ctrl.Manager, address string, rollouts *rollout.Reconciler) error {
	if address == "" {
		return nil
	}
	sender, err := notify.New(address, mgr.GetLogger().WithName("notify"), metrics.Registry)
	if err != nil {
		return err
	}
	if err := mgr.Add(sender); err != nil {
		return fmt.Errorf("add the sender of Flux events: %w", err)
	}
	if rollouts.Instance, err = os.Hostname(); err != nil {
		return fmt.Errorf("name this process: %w", err)
	}
	rollouts.Notifications = sender
	return nil
}
