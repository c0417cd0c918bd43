// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/fluxrollouts/rollout-controller/internal/admission"
	"github.com/fluxrollouts/rollout-controller/internal/controller/deploymentcoordination"
	"github.com/fluxrollouts/rollout-controller/internal/live"
	"github.com/fluxrollouts/rollout-controller/internal/uninstall"
)

// release does what --release-held requests, once, instead of running controllers. It
// stops the controller's own Deployment, and takes the Lease if there is one, so no other
// process acts any more. Then it unpauses every Deployment that waits for its turn.
func (o *options) release(ctx context.Context, config *rest.Config) error {
	on, err := connect(config)
	if err != nil {
		return err
	}
	scheme, err := newScheme(on.mapper, nil)
	if err != nil {
		return err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: on.mapper})
	if err != nil {
		return fmt.Errorf("prepare a client: %w", err)
	}
	if self := o.self(); self.Name != "" {
		if err := uninstall.Stop(ctx, c, self); err != nil {
			return err
		}
	}
	settings := o.manager(nil)
	settings.Scheme, settings.Metrics.BindAddress, settings.HealthProbeBindAddress = scheme, "0", "0"
	mgr, err := ctrl.NewManager(config, settings)
	if err != nil {
		return fmt.Errorf("prepare the manager: %w", err)
	}
	deployments, err := on.deployments(config, scheme)
	if err != nil {
		return err
	}
	return once(ctx, mgr, func(ctx context.Context) error {
		names := admission.NamesOf(o.installation(), o.namespace)
		err := errors.Join(uninstall.StopAdmission(ctx, c, names.Policy, names.Webhook), uninstall.UnpauseAll(ctx, deployments, c, o.onlyWatched()))
		if err != nil {
			return err
		}
		return o.dropCleanup(ctx, c, on)
	})
}

// deployments returns a reader of Deployments where no manager has one.
func (c cluster) deployments(config *rest.Config, scheme *runtime.Scheme) (client.Reader, error) {
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare a client: %w", err)
	}
	objects, err := live.NewObjects(config, http)
	if err != nil {
		return nil, err
	}
	return live.NewReader(objects, scheme, c.mapper, ctrlcache.Options{ByObject: deploymentcoordination.CacheByObject()}), nil
}

// dropCleanup drops the rights that neither Helm nor Flux removes.
func (o *options) dropCleanup(ctx context.Context, c client.Client, on cluster) error {
	rights := uninstall.RightsOf(o.installation())
	if may, err := on.mayDrop(ctx, rights); err != nil || !may {
		return err
	}
	return rights.Drop(ctx, c)
}

// once runs a function as the leader, and then ends.
func once(ctx context.Context, mgr ctrl.Manager, do func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var done error
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		defer cancel()
		done = do(ctx)
		return nil
	})); err != nil {
		return fmt.Errorf("prepare the manager: %w", err)
	}
	err := mgr.Start(ctx)
	return errors.Join(done, err)
}

// self returns the controller's own Deployment. The name is empty if it is unknown.
func (o *options) self() types.NamespacedName {
	return types.NamespacedName{Namespace: o.namespace, Name: o.name}
}

// installation returns the prefix of the names of all objects of this installation. It is
// also the prefix of the Deployment's own name.
func (o *options) installation() string {
	if o.name == "" {
		return admission.Installation
	}
	return strings.TrimSuffix(o.name, "-controller-manager")
}
