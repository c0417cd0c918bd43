// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/admission/singleobject"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

const (
	// settling is how long the API server may take to stop pausing Deployments.
	settling = 5 * time.Second
	// retryAfter is the pause before Deployments that could not be unpaused are tried
	// again.
	retryAfter = time.Minute
)

// errRemoved ends a process in which the coordinator runs without rights.
var errRemoved = errors.New("the role of the controller deploymentcoordination was removed: the process ends, " +
	"and the next one unpauses the Deployments that wait")

// Rights are the names of the RBAC objects with which the controller coordinates
// Deployments, and of those with which it cleans up after that.
type Rights struct {
	// Coordinator is a ClusterRoleBinding. When it is deleted, the coordinator was
	// removed.
	Coordinator string
	// CleanupRole is a ClusterRole, and CleanupBinding binds it. They remain after the
	// coordinator was removed.
	CleanupRole, CleanupBinding string
}

// RightsOf returns the names in an installation of that name.
func RightsOf(installation string) Rights {
	return Rights{
		Coordinator:    installation + "-deploymentcoordination-rolebinding",
		CleanupRole:    installation + "-deploymentcoordination-cleanup-role",
		CleanupBinding: installation + "-deploymentcoordination-cleanup-rolebinding",
	}
}

// Installed reports whether the controller has the rights to clean up.
func (r Rights) Installed(ctx context.Context, c client.Reader) (bool, error) {
	err := c.Get(ctx, client.ObjectKey{Name: r.CleanupBinding}, &rbacv1.ClusterRoleBinding{})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read ClusterRoleBinding %s: %w", r.CleanupBinding, err)
	}
	return err == nil, nil
}

// Drop deletes the rights to clean up. This is the last action that they allow: the role
// is deleted together with its binding, because nobody could delete it afterwards.
func (r Rights) Drop(ctx context.Context, c client.Client) error {
	binding := &rbacv1.ClusterRoleBinding{}
	if err := c.Get(ctx, client.ObjectKey{Name: r.CleanupBinding}, binding); err != nil {
		return client.IgnoreNotFound(err)
	}
	owner := metav1.OwnerReference{
		APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding", Name: binding.Name, UID: binding.UID,
	}
	owned, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": []metav1.OwnerReference{owner}}})
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: r.CleanupRole}}
	if _, err := write.Patch(ctx, c, role, client.RawPatch(types.MergePatchType, owned)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("give ClusterRole %s an owner: %w", r.CleanupRole, err)
	}
	if err := c.Delete(ctx, binding, client.Preconditions{UID: &binding.UID}); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete ClusterRoleBinding %s: %w", r.CleanupBinding, err)
	}
	return nil
}

// Cleanup unpauses the Deployments that wait for a coordination, when the coordinator was
// removed from an installation that continues. Then it drops the rights to do so. It is a
// runnable of a manager and runs on the leader: any earlier coordinator has ended by
// then.
type Cleanup struct {
	// Client reads past the caches, and writes.
	Client client.Client
	// Deployments reads Deployments past the caches, of which tenants create any number.
	Deployments client.Reader
	// Coordinator is the binding of the coordinator's role.
	Coordinator *singleobject.Object[*rbacv1.ClusterRoleBinding]
	// Rights contains the names of the RBAC objects.
	Rights Rights
	// Namespace is the only namespace to clean up. Empty means all.
	Namespace string
	// Coordinates is true if the coordinator runs in this process.
	Coordinates bool
	// Clock is the clock.
	Clock clock.Clock
}

// Start waits until the coordinator was removed, and cleans up. It returns an error if
// the coordinator runs in this process.
func (c *Cleanup) Start(ctx context.Context) error {
	switch {
	case !c.awaitRemoval(ctx):
		return nil
	case c.Coordinates:
		return errRemoved
	}
	for {
		err := c.clean(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		ctrl.LoggerFrom(ctx).Error(err, "not every Deployment that waits is unpaused yet")
		if !sleep(ctx, c.Clock, retryAfter) {
			return nil
		}
	}
}

// awaitRemoval returns false once ctx has ended. Without the right to read the binding,
// it continues to wait.
func (c *Cleanup) awaitRemoval(ctx context.Context) bool {
	changed := make(chan struct{}, 1)
	c.Coordinator.OnChange(func() {
		select {
		case changed <- struct{}{}:
		default: // a check is already due
		}
	})
	for known := c.Coordinator.Known(); ; {
		select {
		case <-known:
			known = nil // once is enough
		case <-changed:
		case <-ctx.Done():
			return false
		}
		if _, there := c.Coordinator.Get(); known == nil && !there && c.Coordinator.Rejected() == nil {
			return true
		}
	}
}

// clean unpauses everything. It checks again once the API server no longer pauses, and
// drops the rights.
func (c *Cleanup) clean(ctx context.Context) error {
	unpaused, err := unpauseAll(ctx, c.Deployments, c.Client, c.Namespace)
	if err == nil && unpaused > 0 && sleep(ctx, c.Clock, settling) {
		_, err = unpauseAll(ctx, c.Deployments, c.Client, c.Namespace)
	}
	if err != nil {
		return err
	}
	if err := c.Rights.Drop(ctx, c.Client); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("the coordinator of Deployments was removed, and holds none any more", "unpaused", unpaused)
	return nil
}

// sleep returns false once ctx has ended.
func sleep(ctx context.Context, clock clock.Clock, pause time.Duration) bool {
	select {
	case <-clock.After(pause):
		return true
	case <-ctx.Done():
		return false
	}
}
