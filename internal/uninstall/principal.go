// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/hold"
)

// ActsInstead reports whether another installation acts instead of the one with these
// names. Then the Deployments that wait are that one's. What may not be read is not
// there, as for the coordinator itself.
func ActsInstead(ctx context.Context, c client.Reader, of hold.Names) (bool, error) {
	if of.Principal == "" {
		return false, nil
	}
	err := c.Get(ctx, client.ObjectKey{Name: of.Principal}, &rbacv1.ClusterRoleBinding{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
		return false, fmt.Errorf("read ClusterRoleBinding %s: %w", of.Principal, err)
	}
	return err == nil, nil
}
