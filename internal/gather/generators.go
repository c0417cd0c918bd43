// SPDX-License-Identifier: Apache-2.0

package gather

import (
	"context"
	"errors"
	"sync"

	generatorv1 "github.com/fluxcd/source-watcher/api/v2/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/flux/targets"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
)

// Generators remembers which ArtifactGenerators have seen their sources as they are, because
// that is found by reading all of them. Of many it knows those that were asked for last. The
// zero value is ready to use.
type Generators struct {
	mu    sync.Mutex
	known *lru.Cache
}

// mostGenerators is how many are known. One takes less than a kilobyte.
const mostGenerators = 4096

// observed adds to a target which generators have seen their sources as they are now, if that
// decides whether it has the release.
func (g Gatherer) observed(ctx context.Context, s *Snapshot, t targets.Target) (targets.Target, error) {
	t.Observed, t.Forbidden = nil, nil
	for _, generator := range t.Unobserved(s.Rollout, s.release()) {
		has, err := g.wasApplied(s, t), error(nil)
		if !g.OneNamespace {
			has, err = g.hasObserved(ctx, generator, t.Artifact.Revisions())
		}
		if errors.As(err, &t.Forbidden) {
			continue
		}
		if err != nil {
			return t, err
		}
		if t.Observed == nil {
			t.Observed = map[types.UID]bool{}
		}
		t.Observed[generator.UID] = has
	}
	return t, nil
}

// wasApplied reports whether the status says that a target has applied the release, or has
// failed with it. Where not all sources are read, that is what is known of them.
func (g Gatherer) wasApplied(s *Snapshot, t targets.Target) bool {
	named := content.Target{Kind: t.Kind(), Namespace: t.Object().GetNamespace(), Name: t.Object().GetName()}
	was := named.StoredIn(s.Rollout.Status.Targets, s.release().Tag)
	return was != nil && (was.State == v1alpha1.TargetApplied || was.State == v1alpha1.TargetFailed)
}

// hasObserved remembers a generator that has seen them until its status changes, or what the
// Rollout's sources offer: a change of another source changes its status.
func (g Gatherer) hasObserved(ctx context.Context, generator *generatorv1.ArtifactGenerator, revisions string) (bool, error) {
	state := generator.ResourceVersion + " " + revisions
	if generator.ResourceVersion != "" && g.Generators.get(generator.UID) == state {
		return true, nil
	}
	has, err := targets.HasObserved(ctx, g.Live, generator)
	if has {
		g.Generators.set(generator.UID, state)
	}
	return has, err
}

func (k *Generators) get(uid types.UID) string {
	if k == nil {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		return ""
	}
	state, _ := k.known.Get(uid)
	known, _ := state.(string)
	return known
}

func (k *Generators) set(uid types.UID, state string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = lru.New(mostGenerators)
	}
	k.known.Add(uid, state)
}
