// SPDX-License-Identifier: Apache-2.0

package quarantine

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/write"
)

// record stores the status, under an optimistic lock.
func (r *Reconciler) record(ctx context.Context, o client.Object, before, after v1alpha1.ReleaseQuarantineStatus) error {
	patch, err := write.StatusPatch(o.GetResourceVersion(), before, after)
	if err != nil {
		return fmt.Errorf("quarantine %s: %w", client.ObjectKeyFromObject(o), err)
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}}
	kind := v1alpha1.ReleaseQuarantineKind
	if r.Cluster {
		kind = v1alpha1.ClusterReleaseQuarantineKind
	}
	answer.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	if answer, err = write.PatchStatus(ctx, r.Client, answer, patch); err != nil {
		return fmt.Errorf("write the status of %s %s: %w", kind, client.ObjectKeyFromObject(o), err)
	}
	r.writes.Wrote(answer)
	return nil
}
