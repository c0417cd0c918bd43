// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// chapterLimit is how long a chapter may take. On an idle machine each takes a quarter of
// it.
const chapterLimit = 2 * time.Minute

// releases is the default story.
const releases = "releases"

// plots are all stories, by name.
var plots = map[string]plot{releases: releasesPlot, "workloads": workloadsPlot}

// plot defines a story.
type plot struct {
	// about describes the story in a few words.
	about    string
	chapters []chapter
	// ending is what must be true at the end.
	ending []expectation
	// commands show the same with kubectl. The tables are shown at the end.
	commands []string
	tables   []schema.GroupVersionResource
	// invite and command show what the user can do after the story.
	invite  string
	command string

	// watched are the kinds whose objects are part of the story.
	watched []client.Object
	// crds, components and args are installed in addition to the release controller's.
	crds, components, args []string
}

// story is a running plot: the changes to the application and their expected results.
type story struct {
	*demo
	scenario.App
	*witness
	close func()
}

// chapter is one release, or one decision about it.
type chapter struct {
	title, intro string
	play         func(*story, context.Context) error
}

// newStory starts to watch first. Thus it misses no event.
func newStory(ctx context.Context, d *demo) (*story, error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &story{demo: d, App: scenario.NewApp("demo", "shop"), witness: newWitness(d.narrator.tell)}
	changes, ended, err := watch(ctx, d.plane.RESTConfig(), d.plane.Client().Scheme(), s.Namespace, d.watched)
	if err != nil {
		cancel()
		return nil, err
	}
	go s.run(ctx, changes)
	s.close = func() {
		cancel()
		ended()
	}
	return s, nil
}

// tell plays the chapters in order and then shows the result.
func (s *story) tell(ctx context.Context) error {
	s.begin()
	s.guide()
	for i, c := range s.chapters {
		s.chapter(i+1, c.title, c.intro)
		if err := s.play(ctx, c); err != nil {
			return fmt.Errorf("chapter %d, %s:\n  %w", i+1, c.title, err)
		}
	}
	return s.epilogue(ctx)
}

func (s *story) play(ctx context.Context, c chapter) error {
	ctx, cancel := context.WithTimeoutCause(ctx, chapterLimit, fmt.Errorf("%s are over", chapterLimit))
	defer cancel()
	return c.play(s, ctx)
}

// must waits until the expectations of a chapter are met, and reports them.
func (s *story) must(ctx context.Context, expectations ...expectation) error {
	if err := s.await(ctx, all(expectations...)); err != nil {
		return err
	}
	s.settle(ctx)
	s.passed(expectations...)
	return nil
}

// create creates the objects of the application.
func (s *story) create(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		if err := s.plane.Client().Create(ctx, o); err != nil {
			return fmt.Errorf("create %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// push pushes a release and makes Flux's image automation notice it at once, not only at
// its next interval.
func (s *story) push(ctx context.Context, artifact controlplane.Artifact) error {
	digest, err := s.plane.Registry.Push(ctx, artifact)
	if err != nil {
		return err
	}
	s.narrator.tell(says(registry, plain, "has a new artifact, %s:%s (%s)", s.Name, artifact.Tag, short(digest)))
	return s.plane.RequestReconcile(ctx, s.ImageRepository(s.plane.Registry.Host()))
}

// patch patches the Rollout as kubectl patch does, and shows the command.
func (s *story) patch(ctx context.Context, body string) error {
	s.narrator.tell(says(you, order, "$ kubectl patch rollout %s -n %s --type=merge -p '%s'", s.Name, s.Namespace, body))
	patch := client.RawPatch(types.MergePatchType, []byte(body))
	if err := s.plane.Client().Patch(ctx, s.Rollout(), patch, client.FieldOwner("kubectl-patch")); err != nil {
		return fmt.Errorf("patch the Rollout: %w", err)
	}
	return nil
}

func (s *story) image(version string) string { return "registry.example/" + s.Name + ":" + version }
