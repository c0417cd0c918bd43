// SPDX-License-Identifier: Apache-2.0

package uninstall

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// A tenant can create a Deployment that looks like this program. It must not keep the
// Deployments of others paused. So one counts for all namespaces only if its account may patch
// Deployments there, which a tenant cannot arrange, and otherwise for its own namespace.

// uncoordinated returns those that wait and that none of the others coordinates. If one of
// the others may coordinate all of them, it returns all that are left, and its name.
func (a *Abandoned) uncoordinated(ctx context.Context, waiting []types.NamespacedName, others map[types.NamespacedName]string) ([]types.NamespacedName, string, error) {
	accounts, namespaces := map[types.NamespacedName]types.NamespacedName{}, map[string]bool{}
	for other, account := range others {
		namespaces[other.Namespace], accounts[types.NamespacedName{Namespace: other.Namespace, Name: account}] = true, other
	}
	waiting = slices.DeleteFunc(waiting, func(key types.NamespacedName) bool { return namespaces[key.Namespace] })
	for account, other := range accounts {
		if may, err := a.mayPatch(ctx, account); err != nil || may {
			return waiting, other.String(), err
		}
	}
	return waiting, "", nil
}

// mayPatch reports whether a ServiceAccount may patch the Deployments of all watched
// namespaces. If this process may not ask, the answer is true.
func (a *Abandoned) mayPatch(ctx context.Context, account types.NamespacedName) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   "system:serviceaccount:" + account.Namespace + ":" + account.Name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: a.Namespace, Verb: "patch", Group: "apps", Resource: "deployments",
		},
	}}
	switch err := a.Client.Create(ctx, review); {
	case apierrors.IsForbidden(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("ask what the account %s may do: %w", account, err)
	}
	return review.Status.Allowed, nil
}
