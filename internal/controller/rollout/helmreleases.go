// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// +kubebuilder:rbac:groups=helm.toolkit.fluxcd.io,resources=helmreleases,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=helmreleases.helm.toolkit.fluxcd.io;gitrepositories.source.toolkit.fluxcd.io;externalartifacts.source.toolkit.fluxcd.io;artifactgenerators.source.extensions.fluxcd.io;environments.environments.kuberik.com;releasequarantines.kuberik.com;clusterrolloutgates.kuberik.com,verbs=list;watch

// WatchHelmReleases makes the reconciler watch HelmReleases too. The API server must
// serve them. It may be called once, after SetupWithManager, also while the manager runs.
// In that case it returns when the cache is filled. Each existing HelmRelease wakes its
// Rollouts.
func (r *Reconciler) WatchHelmReleases(ctx context.Context) error {
	if err := targets.IndexHelmReleases(ctx, r.late.cache); err != nil {
		return err
	}
	if _, err := r.late.cache.GetInformer(ctx, &helmv2.HelmRelease{}); err != nil {
		return fmt.Errorf("watch HelmReleases: %w", err)
	}
	r.late.helmReleases.Store(true)
	c := r.concerned()
	err := r.late.watch(&helmv2.HelmRelease{}, c.rolloutsOfConsumer, contentChanged())
	if err == nil {
		err = r.late.watch(&helmv2.HelmRelease{}, c.rolloutsOfSourceElsewhere, consumptionChanged())
	}
	if err != nil {
		return fmt.Errorf("watch HelmReleases: %w", err)
	}
	return nil
}

// rolloutsOfCharts maps a Repository to the Rollouts that write values of the
// HelmReleases with this chart, in its namespace or in another.
func (c concerned) rolloutsOfCharts(ctx context.Context, source client.Object, key string) []reconcile.Request {
	if !c.late.helmReleases.Load() {
		return nil
	}
	var requests []reconcile.Request
	for _, options := range [][]client.ListOption{
		{client.InNamespace(source.GetNamespace()), client.MatchingFields{targets.ChartIndex: key}},
		{client.MatchingFields{targets.ForeignChartIndex: key}},
	} {
		charts := &helmv2.HelmReleaseList{}
		if err := c.reader.List(ctx, charts, append(options, client.UnsafeDisableDeepCopy, unreadable.Left{})...); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list HelmReleases of a source")
		}
		for i := range charts.Items {
			requests = append(requests, named(&charts.Items[i], targets.RolloutsOf(&charts.Items[i])...)...)
		}
	}
	return requests
}
