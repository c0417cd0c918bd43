// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// observer watches the writes of all clients and passes them to the stand-in for Flux. It
// records when the release of a wave reaches each milestone.
type observer struct {
	flux *flux

	mu   sync.Mutex
	wave *wave
	// versions are the resourceVersions that were seen last.
	versions map[seen]string
	// samples are the observed statuses of the first Rollout, in order.
	samples []v1alpha1.RolloutStatus
}

type seen struct {
	resource resource
	index    int
}

// observe starts the watches, which run until ctx ends. It returns when all existing
// objects were seen.
func observe(ctx context.Context, running *sync.WaitGroup, config *rest.Config, scheme *runtime.Scheme, f *flux) (*observer, error) {
	o := &observer{flux: f, versions: map[seen]string{}}
	watched, err := cache.New(config, cache.Options{Scheme: scheme, DefaultTransform: keepLittle})
	if err != nil {
		return nil, fmt.Errorf("prepare to watch: %w", err)
	}
	running.Go(func() { _ = watched.Start(ctx) })
	for object, see := range map[client.Object]func(int, any){
		&sourcev1.OCIRepository{}:    func(i int, object any) { o.seeRepository(i, object.(*sourcev1.OCIRepository)) },
		&kustomizev1.Kustomization{}: func(i int, object any) { o.seeKustomization(i, object.(*kustomizev1.Kustomization)) },
		&v1alpha1.Rollout{}:          func(i int, object any) { o.seeRollout(i, object.(*v1alpha1.Rollout)) },
		&v1alpha1.HealthCheck{}:      func(i int, object any) { f.seeCheck(i, object.(*v1alpha1.HealthCheck)) },
	} {
		informer, err := watched.GetInformer(ctx, object)
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", object, err)
		}
		look := func(object any) {
			if i, ok := indexOf(object.(client.Object).GetName()); ok {
				see(i, object)
			}
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: look, UpdateFunc: func(_, object any) { look(object) },
		}); err != nil {
			return nil, fmt.Errorf("watch %T: %w", object, err)
		}
	}
	if !watched.WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("wait for what is there: %w", context.Cause(ctx))
	}
	return o, nil
}

// keepLittle drops fields that the benchmark does not read.
func keepLittle(object any) (any, error) {
	if o, ok := object.(client.Object); ok {
		o.SetManagedFields(nil)
	}
	switch o := object.(type) {
	case *kustomizev1.Kustomization:
		o.Status.Inventory, o.Status.History = nil, nil
	case *v1alpha1.Rollout:
		if i, ok := indexOf(o.GetName()); ok && i > 0 {
			o.Status.AvailableReleases, o.Status.Conditions = nil, nil
		}
	}
	return object, nil
}

func (o *observer) seeRepository(i int, r *sourcev1.OCIRepository) {
	o.saw(ociRepositories, i, r)
	if r.Spec.Reference != nil {
		o.arrived(i, r.Spec.Reference.Tag, repositoryWritten)
	}
	o.flux.seeRepository(i, r)
}

func (o *observer) seeKustomization(i int, k *kustomizev1.Kustomization) {
	version := k.Spec.PostBuild.Substitute[variable]
	o.saw(kustomizations, i, k)
	o.arrived(i, version, kustomizationWritten)
	if o.flux.seeKustomization(i, k) {
		o.arrived(i, version, applied)
	}
}

func (o *observer) seeRollout(i int, r *v1alpha1.Rollout) {
	before := o.versionOf(rollouts, i)
	o.saw(rollouts, i, r)
	current := r.Current()
	if current == nil || before == r.ResourceVersion {
		return
	}
	if i == 0 {
		o.mu.Lock()
		o.samples = append(o.samples, *r.Status.DeepCopy())
		o.mu.Unlock()
	}
	o.heard(i, current)
	if current.State() == v1alpha1.BakeSucceeded {
		o.arrived(i, current.Version.Tag, succeeded)
	}
}

// saw records the resourceVersion of an object.
func (o *observer) saw(r resource, i int, object client.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.versions[seen{r, i}] = object.GetResourceVersion()
}

// versionOf returns the resourceVersion of an object that was seen last.
func (o *observer) versionOf(r resource, i int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.versions[seen{r, i}]
}

// awaitAll waits until all watched objects of a fleet were seen.
func (o *observer) awaitAll(ctx context.Context, size int) error {
	for {
		o.mu.Lock()
		count := len(o.versions)
		o.mu.Unlock()
		if count == 3*size {
			return nil
		}
		if err := pause(ctx, look); err != nil {
			return fmt.Errorf("saw %d of %d objects of the fleet: %w", count, 3*size, err)
		}
	}
}

// sampled returns the observed statuses of the first Rollout.
func (o *observer) sampled() []v1alpha1.RolloutStatus {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.samples)
}

// arrived records that a version has reached a milestone, if it is the version of the
// wave.
func (o *observer) arrived(i int, version string, where milestone) {
	at := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.wave != nil && o.wave.release.tag == version {
		o.wave.note(i, where, at)
	}
}

// heard records a status if it is about the release of the wave.
func (o *observer) heard(i int, current *v1alpha1.DeploymentHistoryEntry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.wave != nil && o.wave.release.tag == current.Version.Tag {
		o.wave.hears(i, current)
	}
}

// late returns how many statuses of a wave were written only because a promotion is slow.
func (o *observer) late(w *wave) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return w.late()
}

// follow records the milestones of a wave from now on.
func (o *observer) follow(w *wave) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wave = w
}
