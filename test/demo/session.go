// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/test/controlplane"
	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// stepLimit is how long a step may take. On an idle machine each takes a quarter of
// it.
const stepLimit = 2 * time.Minute

// releases is the default scenario.
const releases = "releases"

// scripts are all scenarios, by name.
var scripts = map[string]script{releases: releasesScript, "workloads": workloadsScript, "held": heldScript, "environments": environmentsScript, "clusters": clustersScript, "rollback": rollbackScript, "digest": digestScript, "approvals": approvalsScript, "story": storyScript}

// script defines a scenario.
type script struct {
	// about describes the scenario in a few words.
	about string
	steps []step
	// ending is what must be true at the end.
	ending []expectation
	// commands show the same with kubectl. The tables are shown at the end.
	commands []string
	tables   []schema.GroupVersionResource
	// questions are asked at the end, with the command line.
	questions [][]string
	// invite and command show what the user can do afterwards.
	invite  string
	command string

	// watched are the kinds whose objects are part of the scenario.
	watched []client.Object
	// other is another environment of the application. Its Rollout is watched, too.
	other environment
	// elsewhere is the name of another cluster, in which the other environment is.
	elsewhere string
	// bake is how long a release bakes in the other environment, if not for bakeTime.
	bake time.Duration
	// measured is true if Prometheus measures error rates.
	measured bool
	// crds, components and args are installed in addition to the release controller's.
	crds, components, args []string
}

// session is a running script: the changes to the application and their expected results.
type session struct {
	*demo
	scenario.App
	*observer
	beyond *observer // of the other environment
	close  func()
}

// step is one release, or one decision about it.
type step struct {
	title, intro string
	play         func(*session, context.Context) error
}

// newSession starts to watch first. Thus it misses no event.
func newSession(ctx context.Context, d *demo) (*session, error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &session{demo: d, App: scenario.NewApp("demo", "shop"), observer: newObserver(d.printer.show)}
	changes, ended, err := watch(ctx, d.plane.RESTConfig(), d.plane.Client().Scheme(), s.Namespace, d.watched)
	if err != nil {
		cancel()
		return nil, err
	}
	go s.run(ctx, changes)
	endedToo := func() {}
	if s.other.namespace != "" {
		if endedToo, err = s.watchOther(ctx); err != nil {
			cancel()
			return nil, err
		}
	}
	s.close = func() {
		cancel()
		ended()
		endedToo()
	}
	return s, nil
}

// playAll plays the steps in order and then shows the result.
func (s *session) playAll(ctx context.Context) error {
	s.begin()
	s.guide()
	for i, c := range s.steps {
		s.step(i+1, c.title, c.intro)
		if err := s.play(ctx, c); err != nil {
			return fmt.Errorf("step %d, %s:\n  %w", i+1, c.title, err)
		}
	}
	return s.showResult(ctx)
}

func (s *session) play(ctx context.Context, c step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stepLimit, fmt.Errorf("%s are over", stepLimit))
	defer cancel()
	return c.play(s, ctx)
}

// must waits until the expectations of a step are met, and reports them.
func (s *session) must(ctx context.Context, expectations ...expectation) error {
	if err := s.await(ctx, all(expectations...)); err != nil {
		return err
	}
	s.settle(ctx)
	s.passed(expectations...)
	return nil
}

// create creates the objects of the application.
func (s *session) create(ctx context.Context, objects ...client.Object) error {
	return createIn(ctx, s.plane, objects...)
}

func createIn(ctx context.Context, plane *controlplane.ControlPlane, objects ...client.Object) error {
	for _, o := range objects {
		if err := plane.Client().Create(ctx, o); err != nil {
			return fmt.Errorf("create %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// push pushes a release and makes Flux's image automation notice it at once, not only at
// its next interval.
func (s *session) push(ctx context.Context, artifact controlplane.Artifact) error {
	digest, err := s.plane.Registry.Push(ctx, artifact)
	if err != nil {
		return err
	}
	s.printer.show(says(registry, plain, "has a new artifact, %s:%s (%s)", s.Name, artifact.Tag, short(digest)))
	return s.plane.RequestReconcile(ctx, s.ImageRepository(s.plane.Registry.Host()))
}

func (s *session) image(version string) string { return "registry.example/" + s.Name + ":" + version }
