// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
)

// +kubebuilder:rbac:groups=source.extensions.fluxcd.io,resources=artifactgenerators,verbs=get;list;watch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=externalartifacts,verbs=get;list;watch
// +kubebuilder:rbac:groups=source.toolkit.fluxcd.io,resources=buckets;helmcharts,verbs=get

// WatchArtifacts makes the reconciler follow releases through ArtifactGenerators, as
// WatchHelmReleases does for HelmReleases.
func (r *Reconciler) WatchArtifacts(ctx context.Context) error {
	if err := targets.IndexArtifacts(ctx, r.late.cache); err != nil {
		return err
	}
	for _, kind := range []client.Object{&generatorv1.ArtifactGenerator{}, &sourcev1.ExternalArtifact{}} {
		if _, err := r.late.cache.GetInformer(ctx, kind); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	r.late.artifacts.Store(true)
	c := r.concerned()
	err := r.late.watch(&generatorv1.ArtifactGenerator{}, c.rolloutsOfGenerator, contentChanged())
	if err == nil {
		err = r.late.watch(&sourcev1.ExternalArtifact{}, c.rolloutsOfArtifact, contentChanged())
	}
	if err != nil {
		return fmt.Errorf("watch ArtifactGenerators: %w", err)
	}
	return nil
}

// rolloutsOfGenerator maps an ArtifactGenerator to the Rollouts of the Repositories that it
// takes, itself or by ExternalArtifacts.
func (c concerned) rolloutsOfGenerator(ctx context.Context, g client.Object) []reconcile.Request {
	return c.rolloutsOfSources(ctx, g.(*generatorv1.ArtifactGenerator), targets.MostArtifactsInRow)
}

func (c concerned) rolloutsOfSources(ctx context.Context, g *generatorv1.ArtifactGenerator, row int) []reconcile.Request {
	var requests []reconcile.Request
	for _, s := range g.Spec.Sources {
		switch ref := targets.SourceOfGenerator(g, s); s.Kind {
		case sourcev1.OCIRepositoryKind, sourcev1.GitRepositoryKind:
			requests = append(requests, c.rolloutOfRepository(ctx, ref)...)
		case sourcev1.ExternalArtifactKind:
			requests = append(requests, c.rolloutsWithin(ctx, ref.NamespacedName, row-1)...)
		}
	}
	return requests
}

// rolloutsOfArtifact maps an ExternalArtifact to the Rollouts of what it is made of, and to
// those that write what takes it.
func (c concerned) rolloutsOfArtifact(ctx context.Context, artifact client.Object) []reconcile.Request {
	requests := c.rolloutsAbove(ctx, client.ObjectKeyFromObject(artifact))
	if g, named := targets.GeneratorOf(artifact.(*sourcev1.ExternalArtifact)); named {
		requests = append(requests, c.rolloutsOfNamed(ctx, g, targets.MostArtifactsInRow)...)
	}
	return requests
}

// rolloutsAbove maps an ExternalArtifact to the Rollouts of what it is made of.
func (c concerned) rolloutsAbove(ctx context.Context, artifact client.ObjectKey) []reconcile.Request {
	return c.rolloutsWithin(ctx, artifact, targets.MostArtifactsInRow)
}

func (c concerned) rolloutsWithin(ctx context.Context, artifact client.ObjectKey, row int) []reconcile.Request {
	if row == 0 || !c.late.artifacts.Load() {
		return nil
	}
	made := &sourcev1.ExternalArtifact{}
	if err := c.reader.Get(ctx, artifact, made, client.UnsafeDisableDeepCopy); err != nil {
		return c.unread(ctx, err)
	}
	g, named := targets.GeneratorOf(made)
	if !named {
		return nil
	}
	return c.rolloutsOfNamed(ctx, g, row)
}

func (c concerned) rolloutsOfNamed(ctx context.Context, generator client.ObjectKey, row int) []reconcile.Request {
	g := &generatorv1.ArtifactGenerator{}
	if err := c.reader.Get(ctx, generator, g, client.UnsafeDisableDeepCopy); err != nil {
		return c.unread(ctx, err)
	}
	return c.rolloutsOfSources(ctx, g, row)
}

func (c concerned) unread(ctx context.Context, err error) []reconcile.Request {
	if client.IgnoreNotFound(err) != nil {
		ctrl.LoggerFrom(ctx).Error(err, "find what an ExternalArtifact is made of")
	}
	return nil
}
