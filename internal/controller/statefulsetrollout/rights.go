// SPDX-License-Identifier: Apache-2.0

package statefulsetrollout

import (
	"context"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rights caches in which namespaces events may be created. Where that is not allowed,
// each event would be refused, and the refusal logged.
type rights struct {
	mu      sync.Mutex
	mayEmit map[string]bool
}

// allowEvents asks the API server once per namespace. Without the permission to ask,
// events count as not allowed. After any other failure it asks again next time.
func (r *rights) allowEvents(ctx context.Context, c client.Client, namespace string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if allowed, known := r.mayEmit[namespace]; known {
		return allowed
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "create", Resource: "events"},
	}}
	if err := c.Create(ctx, review); err != nil && !apierrors.IsForbidden(err) {
		return false
	}
	if r.mayEmit == nil {
		r.mayEmit = map[string]bool{}
	}
	r.mayEmit[namespace] = review.Status.Allowed
	return review.Status.Allowed
}

// forget makes the next call ask again about a namespace, whose groups may all be
// deleted.
func (r *rights) forget(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mayEmit, namespace)
}
