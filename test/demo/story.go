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

// chapterLimit is how long a chapter may take; each takes a quarter of it on a
// machine that has nothing else to do.
const chapterLimit = 2 * time.Minute

// releases is the story that is told unless another is asked for.
const releases = "releases"

// plots are the stories there are, by name.
var plots = map[string]plot{releases: releasesPlot, "workloads": workloadsPlot}

// plot is what a story consists of.
type plot struct {
	// about says in a few words what it tells.
	about    string
	chapters []chapter
	// ending is what must have come of it all.
	ending []expectation
	// commands show the same with kubectl, and tables what they show in the end.
	commands []string
	tables   []schema.GroupVersionResource
	// invite says what one can do when the story is told.
	invite  string
	command string

	// watched are the kinds whose objects tell the story.
	watched []client.Object
	// crds, components and args are what is installed beside the controller of
	// releases.
	crds, components, args []string
}

// story is a plot as it unfolds: what is done to the application, and what must
// follow.
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

// newStory begins to watch, so that nothing happens unseen.
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

// tell plays the chapters in order and ends with what is left to see.
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

// must waits for what a chapter has to lead to, and says so.
func (s *story) must(ctx context.Context, expectations ...expectation) error {
	if err := s.await(ctx, all(expectations...)); err != nil {
		return err
	}
	s.settle(ctx)
	s.passed(expectations...)
	return nil
}

// create makes the objects of the application.
func (s *story) create(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		if err := s.plane.Client().Create(ctx, o); err != nil {
			return fmt.Errorf("create %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// push makes a release and lets Flux's image automation notice it, which would
// happen by itself at its next interval.
func (s *story) push(ctx context.Context, artifact controlplane.Artifact) error {
	digest, err := s.plane.Registry.Push(ctx, artifact)
	if err != nil {
		return err
	}
	s.narrator.tell(says(registry, plain, "has a new artifact, %s:%s (%s)", s.Name, artifact.Tag, short(digest)))
	return s.plane.RequestReconcile(ctx, s.ImageRepository(s.plane.Registry.Host()))
}

// patch does what a kubectl patch of the Rollout does, and shows its command.
func (s *story) patch(ctx context.Context, body string) error {
	s.narrator.tell(says(you, order, "$ kubectl patch rollout %s -n %s --type=merge -p '%s'", s.Name, s.Namespace, body))
	patch := client.RawPatch(types.MergePatchType, []byte(body))
	if err := s.plane.Client().Patch(ctx, s.Rollout(), patch, client.FieldOwner("kubectl-patch")); err != nil {
		return fmt.Errorf("patch the Rollout: %w", err)
	}
	return nil
}

func (s *story) image(version string) string { return "registry.example/" + s.Name + ":" + version }
