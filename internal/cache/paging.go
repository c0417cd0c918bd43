// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	imagev1 "github.com/fluxcd/image-reflector-controller/api/v1"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// PageSize is the number of objects in a page. Each object has some kilobytes in the form
// that the API server stores.
const PageSize = 250

// newInformer returns the informer of a cache. Kinds that may have thousands of objects
// are listed page by page, and each page is trimmed before the next request: all stored
// objects together would need several times the memory of the trimmed ones. client-go
// would instead start a watch that sends all objects first. That needs little memory, but
// reads each object four times, while a page is read twice.
func (t *trimmer) newInformer(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration,
	indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	switch example.(type) {
	case *sourcev1.OCIRepository, *sourcev1.GitRepository, *kustomizev1.Kustomization, *helmv2.HelmRelease, *imagev1.ImagePolicy,
		*sourcev1.ExternalArtifact, *imagev1.ImageRepository, *v1alpha1.Rollout, *v1alpha1.HealthCheck:
		all := toolscache.ToListerWatcherWithContext(from)
		from = toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
			ListWithContextFunc: t.paged(all), WatchFuncWithContext: all.WatchWithContext,
		}, withoutStreams{})
	}
	if t.budget.most == 0 {
		return toolscache.NewSharedIndexInformer(from, example, resync, indexers)
	}
	informer := toolscache.NewSharedIndexInformer(t.listed(from, example), example, resync, indexers)
	t.budget.follow(informer)
	return informer
}

// withoutStreams is a client that does not start a watch with all existing objects.
type withoutStreams struct{}

// IsWatchListSemanticsUnSupported makes client-go list instead.
func (withoutStreams) IsWatchListSemanticsUnSupported() bool { return true }

// paged lists a page and trims it. An API server that may answer from its own cache,
// however old, returns all objects at once. Therefore paged requests the newest state.
func (t *trimmer) paged(all toolscache.ListerWithContext) toolscache.ListWithContextFunc {
	return func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		if options.Limit > 0 {
			options.Limit, options.ResourceVersion = PageSize, ""
		}
		page, err := all.ListWithContext(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list a page: %w", err)
		}
		return page, apimeta.EachListItem(page, func(o runtime.Object) error {
			_, err := t.trim(o)
			return err
		})
	}
}
