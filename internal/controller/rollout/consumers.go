// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"slices"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
)

// consumptionChanged passes an object that begins or ceases to consume a Repository of another
// namespace, or an ExternalArtifact, also because it is being deleted. How it fares does not matter: a Rollout only
// names what consumes its Repositories from other namespaces.
func consumptionChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return consumedElsewhere(e.ObjectOld) != consumedElsewhere(e.ObjectNew)
	}}
}

// consumedElsewhere returns the Repository of another namespace that an object consumes, or the
// ExternalArtifact, whose Repository may be in another one. It is empty if there is none, or if
// the object is being deleted.
func consumedElsewhere(o client.Object) targets.Ref {
	ref, ok := targets.ConsumedElsewhere(o)
	if key, takes := targets.ArtifactOf(o); takes {
		ref, ok = targets.Ref{Kind: sourcev1.ExternalArtifactKind, NamespacedName: key}, true
	}
	if !ok || !o.GetDeletionTimestamp().IsZero() {
		return targets.Ref{}
	}
	return ref
}

// rolloutsOfSourceElsewhere maps a Kustomization or HelmRelease to the Rollout of the
// Repository of another namespace that it consumes, itself or by an ExternalArtifact.
func (c concerned) rolloutsOfSourceElsewhere(ctx context.Context, o client.Object) []reconcile.Request {
	if c.noCrossNamespaceRefs {
		return nil
	}
	if key, takes := targets.ArtifactOf(o); takes {
		return slices.DeleteFunc(c.rolloutsAbove(ctx, key), func(r reconcile.Request) bool { return r.Namespace == o.GetNamespace() })
	}
	key, ok := targets.ConsumedElsewhere(o)
	if !ok {
		return nil
	}
	return c.rolloutOfRepository(ctx, key)
}

// rolloutsOfConsumer maps a Kustomization or HelmRelease to the Rollouts that it names, and to
// the Rollout of the Repository of its namespace that it consumes, itself or by an
// ExternalArtifact.
func (c concerned) rolloutsOfConsumer(ctx context.Context, o client.Object) []reconcile.Request {
	requests := named(o, targets.RolloutsOf(o)...)
	if key, ok := targets.ConsumedBy(o); ok && key.Namespace == o.GetNamespace() {
		requests = append(requests, c.rolloutOfRepository(ctx, key)...)
	}
	if key, ok := targets.ArtifactOf(o); ok {
		above := c.rolloutsAbove(ctx, key)
		requests = append(requests, slices.DeleteFunc(above, func(r reconcile.Request) bool { return r.Namespace != o.GetNamespace() })...)
	}
	return requests
}

func (c concerned) rolloutOfRepository(ctx context.Context, ref targets.Ref) []reconcile.Request {
	repository := ref.New()
	if targets.IsGit(repository) && !c.late.gitRepositories.Load() {
		return nil
	}
	if err := c.reader.Get(ctx, ref.NamespacedName, repository, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		ctrl.LoggerFrom(ctx).Error(err, "get the source that an object consumes")
	}
	return named(repository, targets.RolloutOf(repository))
}
