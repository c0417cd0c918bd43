// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/announce"
)

// reportUnwritable warns on a Rollout whose status the API server does not store as long as
// the Rollout does not change. Attempts continue, with back-off. Each version of it is
// reported once. No condition could show it.
func (r *Reconciler) reportUnwritable(ctx context.Context, rollout *v1alpha1.Rollout, err error) {
	m := r.memory.of(client.ObjectKeyFromObject(rollout))
	if !isRejectedPermanently(err) || m.unwritable == rollout.ResourceVersion {
		return
	}
	m.unwritable = strings.Clone(rollout.ResourceVersion)
	announce.Event(ctx, r.Events, rollout, corev1.EventTypeWarning, v1alpha1.StatusNotWrittenReason,
		"nothing is promoted, since the status cannot be written: "+err.Error())
}

// isRejectedPermanently reports whether the object is too large, invalid or forbidden to
// write.
func isRejectedPermanently(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsRequestEntityTooLargeError(err) || etcdSaysTooLarge(err)
}

// etcdSaysTooLarge reports whether an object exceeds the limit of etcd, 1.5 MiB. It reads a
// text of etcd and of its client, because the API server passes that on with no reason of
// its own.
func etcdSaysTooLarge(err error) bool {
	return strings.Contains(err.Error(), "too large") || strings.Contains(err.Error(), "larger than max")
}
