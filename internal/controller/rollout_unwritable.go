// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
)

// unwritable remembers which version of a Rollout does not take a status, so that
// each is told once: there is no condition that could say so.
type unwritable struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]string
}

// tellUnwritable warns on a Rollout whose status the API server will not store as
// long as the Rollout is as it is. Trying again goes on, with back-off.
func (r *RolloutReconciler) tellUnwritable(ctx context.Context, rollout *v1alpha1.Rollout, err error) {
	if !isRefusedForGood(err) || !r.unwritable.note(client.ObjectKeyFromObject(rollout), rollout.ResourceVersion) {
		return
	}
	announce.Event(ctx, r.Events, rollout, corev1.EventTypeWarning, v1alpha1.StatusNotWrittenReason,
		"nothing is promoted, since the status cannot be written: "+err.Error())
}

// isRefusedForGood: the object is too large or invalid, or writing it is forbidden.
// etcd's own limit, of 1.5 MiB, is known by its words only.
func isRefusedForGood(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsRequestEntityTooLargeError(err) ||
		strings.Contains(err.Error(), "too large") || strings.Contains(err.Error(), "larger than max")
}

func (u *unwritable) note(rollout types.NamespacedName, version string) (news bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.seen[rollout] == version {
		return false
	}
	if u.seen == nil {
		u.seen = map[types.NamespacedName]string{}
	}
	u.seen[rollout] = version
	return true
}

func (u *unwritable) forget(rollout types.NamespacedName) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.seen, rollout)
}
