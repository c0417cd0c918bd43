// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coordinationv1 "github.com/fluxrollouts/rollout-controller/api/coordination/v1"
	"github.com/fluxrollouts/rollout-controller/internal/admission"
	"github.com/fluxrollouts/rollout-controller/internal/admission/singleobject"
	"github.com/fluxrollouts/rollout-controller/internal/controller/deploymentcoordination"
	"github.com/fluxrollouts/rollout-controller/internal/uninstall"
)

// registerCleanup adds the cleanup, which unpauses the waiting Deployments when the
// coordinator is removed from this installation. It adds nothing if --controllers names
// the coordinator, because it is there to stay, or if there are no rights for the
// cleanup, because then there is nothing to clean up.
func (w wiring) registerCleanup(ctx context.Context) error {
	if _, byName := w.chosen.wants(coordinationController); byName {
		return nil
	}
	rights := uninstall.RightsOf(w.installation())
	if may, err := w.cluster.mayDrop(ctx, rights); err != nil || !may {
		return err
	}
	direct, err := w.direct()
	if err != nil {
		return err
	}
	if installed, err := rights.Installed(ctx, direct); err != nil || !installed {
		return err
	}
	roles, err := rbacclient.NewForConfigAndClient(w.GetConfig(), w.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("prepare a client: %w", err)
	}
	coordinator := singleobject.Watch(roles.RESTClient(), "clusterrolebindings", &rbacv1.ClusterRoleBinding{}, types.NamespacedName{Name: rights.Coordinator})
	return errors.Join(w.Add(coordinator), w.Add(&uninstall.Cleanup{
		Client: direct, Deployments: w.live.Keeping(deploymentcoordination.CacheByObject()), Coordinator: coordinator, Rights: rights, Namespace: w.onlyWatched(),
		Coordinates: w.starts[coordinationController], Clock: clock.RealClock{},
	}))
}

// direct returns a client without caches, for single objects of the installation.
func (w wiring) direct() (client.Client, error) {
	c, err := client.New(w.GetConfig(), client.Options{HTTPClient: w.GetHTTPClient(), Scheme: w.GetScheme(), Mapper: w.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("prepare a client: %w", err)
	}
	return c, nil
}

// registerAbandoned adds what unpauses the Deployments that wait although the coordinator
// runs neither here nor in another instance. A shard adds nothing: the instance that acts
// for all others does.
func (w wiring) registerAbandoned(ctx context.Context) error {
	if w.starts[coordinationController] || w.selector != nil {
		return nil
	}
	gone, err := w.cluster.missing(coordinationController)
	if err != nil {
		return err
	}
	direct, err := w.direct()
	if err != nil {
		return err
	}
	if acts, err := w.mayUnpause(ctx, direct); err != nil || !acts {
		return err
	}
	return w.Add(&uninstall.Abandoned{
		Client: direct, Deployments: w.live.Keeping(uninstall.KeptOfAll()), Because: w.whyUncoordinated(gone), Gone: gone != nil, Self: w.self(),
		Policy: admission.NamesOf(w.installation(), w.namespace).Policy, Namespace: w.onlyWatched(), Clock: clock.RealClock{},
	})
}

// mayUnpause reports whether this account may unpause Deployments, and is not about to lose
// that right: without its role, the coordinator was removed, and the cleanup unpauses them.
func (w wiring) mayUnpause(ctx context.Context, c client.Reader) (bool, error) {
	missing, err := w.cluster.lacksAny(ctx, rightsOn("apps", "deployments", "list", "patch"), w.onlyWatched())
	if err != nil || missing.verb != "" {
		return false, err
	}
	err = c.Get(ctx, client.ObjectKey{Name: uninstall.RightsOf(w.installation()).Coordinator}, &rbacv1.ClusterRoleBinding{})
	return !apierrors.IsNotFound(err), nil
}

// whyUncoordinated returns why the coordinator does not run here.
func (w wiring) whyUncoordinated(gone error) string {
	switch wanted, _ := w.chosen.wants(coordinationController); {
	case !wanted:
		return "--controllers leaves out " + coordinationController
	case gone != nil:
		return gone.Error()
	}
	return "this account may not coordinate: " + installs[coordinationController]
}

// unpauseWithout unpauses all Deployments that wait, if the coordinator cannot start because
// the kind of coordinations is gone: then nobody wants them to wait. It returns why it does
// not start.
func (o *options) unpauseWithout(ctx context.Context, config *rest.Config, on cluster, why error) error {
	lack, missing := errors.AsType[unserved](why)
	if !missing || lack.Kind != coordinationv1.DeploymentCoordinationKind {
		return why
	}
	scheme, err := newScheme(on.mapper, nil)
	if err != nil {
		return errors.Join(why, err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: on.mapper})
	if err != nil {
		return errors.Join(why, fmt.Errorf("prepare a client: %w", err))
	}
	deployments, err := on.deployments(config, scheme)
	if err != nil {
		return errors.Join(why, err)
	}
	return errors.Join(why, uninstall.UnpauseAll(ctx, deployments, c, o.onlyWatched()))
}

// mayDrop reports whether this account has the rights to clean up.
func (c cluster) mayDrop(ctx context.Context, rights uninstall.Rights) (bool, error) {
	return c.allows(ctx, right{verb: "delete", group: rbacv1.GroupName, resource: "clusterrolebindings", name: rights.CleanupBinding}, "")
}
