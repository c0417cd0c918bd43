// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
)

// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=gitrepositories,verbs=get;list;watch;patch

// WatchGitRepositories makes the reconciler watch GitRepositories too, as WatchHelmReleases
// does with HelmReleases.
func (r *Reconciler) WatchGitRepositories(ctx context.Context) error {
	if err := targets.IndexGitRepositories(ctx, r.late.cache); err != nil {
		return err
	}
	if _, err := r.late.cache.GetInformer(ctx, &sourcev1.GitRepository{}); err != nil {
		return fmt.Errorf("watch GitRepositories: %w", err)
	}
	r.late.gitRepositories.Store(true)
	c := r.concerned()
	if err := r.late.watch(&sourcev1.GitRepository{}, c.rolloutsOfSource, writtenByRollout(), contentChanged()); err != nil {
		return fmt.Errorf("watch GitRepositories: %w", err)
	}
	return nil
}

// writtenByRollout passes a GitRepository that names a Rollout, or no longer does. Most have
// nothing to do with Rollouts, and each push to Git changes them.
func writtenByRollout() predicate.Predicate {
	names := func(o client.Object) bool { return targets.RolloutOf(o) != "" }
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return names(e.Object) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return names(e.Object) },
		GenericFunc: func(e event.GenericEvent) bool { return names(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return names(e.ObjectOld) || names(e.ObjectNew) },
	}
}
