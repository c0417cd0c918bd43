// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// errStale means that the Rollout has changed since it was read.
var errStale = errors.New("the Rollout has changed since it was read")

// confirm makes sure that the history in memory is the newest. A write under its lock has
// just proven it, or else confirm reads the Rollout past the cache. An old history would
// write an old version to the targets.
func (r *Reconciler) confirm(ctx context.Context, rollout *v1alpha1.Rollout, recorded bool) error {
	if recorded {
		return nil
	}
	live := &v1alpha1.Rollout{}
	err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(rollout), live)
	switch {
	case apierrors.IsNotFound(err):
		return errStale
	case err != nil:
		return fmt.Errorf("confirm the history: %w", err)
	case live.UID != rollout.UID || live.ResourceVersion != rollout.ResourceVersion:
		return errStale
	}
	return nil
}
