// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/imagename"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/quarantined"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/quarantine"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// gatherQuarantines reads which releases failed elsewhere, or were recalled.
func (g Gatherer) gatherQuarantines(ctx context.Context, s *Snapshot) error {
	if !g.Quarantines {
		return nil
	}
	all, err := g.quarantines(ctx, s.Rollout.Namespace)
	if err != nil {
		s.Quarantines.Problem = &verdict.Problem{
			Reason: v1alpha1.QuarantineListFailedReason, Message: "the quarantines could not be read" + unreadable.Why(err),
		}
		return err
	}
	slices.SortFunc(all, func(a, b quarantined.Quarantine) int { return cmp.Compare(a.Name, b.Name) })
	s.Quarantines.All = all
	return nil
}

// quarantines returns those that count in a namespace. Of one that cannot be decoded, the
// parts count that can: a typing error must not cancel a recall. They belong to the cache.
func (g Gatherer) quarantines(ctx context.Context, namespace string) ([]quarantined.Quarantine, error) {
	own := &v1alpha1.ReleaseQuarantineList{}
	options := []client.ListOption{client.UnsafeDisableDeepCopy, unreadable.Left{}}
	if !g.QuarantinesEverywhere {
		options = append(options, client.InNamespace(namespace))
	}
	if err := g.Client.List(ctx, own, options...); err != nil {
		return nil, fmt.Errorf("list ReleaseQuarantines: %w", err)
	}
	all := make([]quarantined.Quarantine, 0, len(own.Items))
	for i := range own.Items {
		if q := &own.Items[i]; q.DeletionTimestamp.IsZero() {
			managed := quarantine.IsManaged(q)
			all = append(all, quarantined.Quarantine{
				Name: quarantineName(q, namespace), Spec: fullyNamed(q.Spec), Managed: managed,
				Status: quarantine.Counted(q.Status, managed, q.CreationTimestamp.Time),
			})
		}
	}
	recalls, err := g.clusterQuarantines(ctx, namespace)
	return append(all, recalls...), err
}

// fullyNamed returns a spec with the full name of its image, as policies have it.
func fullyNamed(spec v1alpha1.ReleaseQuarantineSpec) v1alpha1.ReleaseQuarantineSpec {
	spec.Image = imagename.Canonical(spec.Image)
	return spec
}

// quarantineName returns the kind and name, with the namespace if it is another one.
func quarantineName(q *v1alpha1.ReleaseQuarantine, namespace string) string {
	if q.Namespace == namespace {
		return v1alpha1.ReleaseQuarantineKind + " " + q.Name
	}
	return v1alpha1.ReleaseQuarantineKind + " " + q.Namespace + "/" + q.Name
}

// clusterQuarantines returns the ClusterReleaseQuarantines that select a namespace.
func (g Gatherer) clusterQuarantines(ctx context.Context, namespace string) ([]quarantined.Quarantine, error) {
	list := &v1alpha1.ClusterReleaseQuarantineList{}
	if err := g.Client.List(ctx, list, client.UnsafeDisableDeepCopy, unreadable.Left{}); err != nil {
		return nil, fmt.Errorf("list ClusterReleaseQuarantines: %w", err)
	}
	labels, err := g.labelsFor(ctx, list.Items, namespace)
	if err != nil {
		return nil, err
	}
	var all []quarantined.Quarantine
	for i := range list.Items {
		q := &list.Items[i]
		if q.DeletionTimestamp.IsZero() && (q.Spec.NamespaceSelector == nil || selects(q.Spec.NamespaceSelector, labels)) {
			all = append(all, quarantined.Quarantine{
				Name: v1alpha1.ClusterReleaseQuarantineKind + " " + q.Name, Spec: fullyNamed(q.Spec.ReleaseQuarantineSpec),
				Status: quarantine.Counted(q.Status, false, q.CreationTimestamp.Time),
			})
		}
	}
	return all, nil
}

// labelsFor returns the labels of a namespace, if one of the quarantines selects by them.
func (g Gatherer) labelsFor(ctx context.Context, all []v1alpha1.ClusterReleaseQuarantine, namespace string) (map[string]string, error) {
	if !slices.ContainsFunc(all, func(q v1alpha1.ClusterReleaseQuarantine) bool { return q.Spec.NamespaceSelector != nil }) {
		return nil, nil
	}
	return namespaceLabels(ctx, g.Client, namespace)
}
