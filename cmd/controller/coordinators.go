// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	runtimemetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fluxrollouts/rollout-controller/internal/admission"
	"github.com/fluxrollouts/rollout-controller/internal/admission/webhook"
	"github.com/fluxrollouts/rollout-controller/internal/controller/deploymentcoordination"
	"github.com/fluxrollouts/rollout-controller/internal/controller/statefulsetrollout"
	"github.com/fluxrollouts/rollout-controller/internal/metrics"
)

// registerCoordinators adds the controllers that order the steps within a release.
func (w wiring) registerCoordinators(ctx context.Context) error {
	if w.starts[coordinationController] {
		if err := w.registerDeployments(ctx); err != nil {
			return fmt.Errorf("set up the deploymentcoordination controller: %w", err)
		}
	}
	if w.starts[statefulSetController] {
		if err := w.registerStatefulSets(ctx); err != nil {
			return fmt.Errorf("set up the statefulsetrollout controller: %w", err)
		}
	}
	return nil
}

// registerDeployments adds the controller, and with it the component that reports how
// Deployments are paused at admission, and the webhook, which listens only where it is
// installed.
func (w wiring) registerDeployments(ctx context.Context) error {
	names := admission.NamesOf(w.installation(), w.namespace)
	installed, err := admission.NewInstalled(w, names)
	if err != nil {
		return err
	}
	if w.webhooks {
		if _, err := webhook.Add(ctx, w, installed, names, webhook.Options{
			Port: w.webhookPort, CertPath: w.webhookCertPath, CertName: w.webhookCertName, KeyName: w.webhookCertKey, EnableHTTP2: w.enableHTTP2,
		}); err != nil {
			return err
		}
	}
	deployments := &deploymentcoordination.Reconciler{
		Client:    w.GetClient(),
		APIReader: w.live,
		Events:    w.eventsBy(coordinationController + "-controller"),
		Now:       time.Now,
		Self:      w.self(),
		Admission: installed,
		Durations: w.timed,
	}
	return deployments.SetupWithManager(ctx, w, w.controller())
}

func (w wiring) registerStatefulSets(ctx context.Context) error {
	groups := metrics.NewGroups()
	if err := runtimemetrics.Registry.Register(groups); err != nil {
		return err
	}
	sets := &statefulsetrollout.Reconciler{
		Client:      w.GetClient(),
		APIReader:   w.live,
		Events:      w.eventsBy(statefulSetController + "-controller"),
		Now:         time.Now,
		UseEviction: w.useEviction,
		Metrics:     groups,
	}
	return sets.SetupWithManager(ctx, w, w.controller())
}
