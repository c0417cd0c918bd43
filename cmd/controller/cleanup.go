// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	direct, err := client.New(w.GetConfig(), client.Options{HTTPClient: w.GetHTTPClient(), Scheme: w.GetScheme(), Mapper: w.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("prepare a client: %w", err)
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

// mayDrop reports whether this account has the rights to clean up.
func (c cluster) mayDrop(ctx context.Context, rights uninstall.Rights) (bool, error) {
	return c.allows(ctx, right{verb: "delete", group: rbacv1.GroupName, resource: "clusterrolebindings", name: rights.CleanupBinding}, "")
}
