// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// heldFor is how long a release must visibly stay held back.
const heldFor = 3 * time.Second

// releasesScript is the scenario of good and bad releases.
var releasesScript = script{
	about: "four releases of the application shop, one of them bad",
	steps: releasesSteps,
	ending: []expectation{
		history("1: 1.0.0 Succeeded", "2: 1.1.0 Succeeded", "3: 1.2.0 Failed", "4: 1.2.1 Succeeded"),
		targetsCarry("1.2.1"), runs("registry.example/shop:1.2.1"), atRest,
	},
	commands: []string{
		"kubectl rollouts get shop -w -n demo",
		"kubectl rollouts explain shop -n demo",
		"kubectl rollouts status shop -n demo",
		"kubectl get ocirepository,kustomization,healthcheck,deployment -n demo",
	},
	tables:  []schema.GroupVersionResource{v1alpha1.GroupVersion.WithResource("rollouts")},
	invite:  "Send shop back, for example:",
	command: `kubectl rollouts pin shop 1.1.0 -n demo -m "1.2.1 is slow"`,
	questions: [][]string{
		{"history", "shop", "-n", "demo"},
		{"explain", "shop", "-n", "demo"},
		{"simulate", "shop", "-n", "demo", "--release", "1.3.0@+1h"},
	},
	watched: ofReleases,
}

var releasesSteps = []step{
	{
		title: "The first release",
		intro: "Flux deploys shop: an OCIRepository pulls its manifests and a Kustomization applies them. " +
			"Which version that is, the Rollout decides, and writes it to the OCIRepository. " +
			"A release then has to prove itself: applied by Flux, found healthy, and healthy still after " +
			"a bake time of " + bakeTime.String() + ".",
		play: (*session).firstRelease,
	},
	{
		title: "A newer release",
		intro: "1.1.0 is pushed. The current release has proven itself, so nothing holds the new one back.",
		play:  func(s *session, ctx context.Context) error { return s.goodRelease(ctx, 2, "1.1.0") },
	},
	{
		title: "A bad release",
		intro: "1.2.0 is pushed, and its pods will never become ready. Flux applies it without a complaint; " +
			"it is the bake that finds out. The old pods keep serving.",
		play: (*session).badRelease,
	},
	{
		title: "The fix waits for a decision",
		intro: "1.2.1 fixes it. But after a failed bake the Rollout promotes nothing by itself: somebody should " +
			"look first. It says what it waits for.",
		play: (*session).heldRelease,
	},
	{
		title: "You decide",
		intro: "Naming a version in spec.wantedVersion goes past the failed bake. It also pins the Rollout, so " +
			"the pin is removed when the fix has proven itself.",
		play: (*session).manualRelease,
	},
}

// pushFirst pushes the first release, before the objects are there.
func (s *session) pushFirst(ctx context.Context) error {
	digest, err := s.plane.Registry.Push(ctx, s.Release("1.0.0"))
	if err != nil {
		return fmt.Errorf("push 1.0.0: %w", err)
	}
	s.printer.show(
		says(registry, plain, "has a first artifact, %s:1.0.0 (%s)", s.Name, short(digest)),
		says(you, plain, "create the Flux objects, a HealthCheck and the Rollout"))
	return nil
}

func (s *session) firstRelease(ctx context.Context) error {
	if err := s.pushFirst(ctx); err != nil {
		return err
	}
	if err := s.create(ctx, s.objects()...); err != nil {
		return err
	}
	return s.proves(ctx, 1, "1.0.0")
}

// objects returns all objects of the application. An object comes after the objects that it
// refers to. Thus no reference is ever missing.
func (s *session) objects() []client.Object { return s.objectsOf(bakeTime) }

// objectsOf returns them with a Rollout whose releases bake for some time.
func (s *session) objectsOf(bake time.Duration) []client.Object {
	host := s.plane.Registry.Host()
	return []client.Object{
		s.NamespaceObject(),
		s.Kustomization(),
		s.HealthCheck(),
		s.ImageRepository(host),
		s.ImagePolicy(">=1.0.0"),
		s.Rollout(s.Baked(bake, deployTimeout)),
		s.OCIRepositoryWithFirstTag(host),
	}
}

func (s *session) goodRelease(ctx context.Context, id int64, version string) error {
	if err := s.push(ctx, s.Release(version)); err != nil {
		return err
	}
	return s.proves(ctx, id, version)
}

func (s *session) proves(ctx context.Context, id int64, version string) error {
	return s.must(ctx, current(id, version, v1alpha1.BakeSucceeded), runs(s.image(version)))
}

func (s *session) badRelease(ctx context.Context) error {
	if err := s.plane.BreakVersion(ctx, "1.2.0"); err != nil {
		return err
	}
	if err := s.push(ctx, s.Release("1.2.0")); err != nil {
		return err
	}
	return s.must(ctx, current(3, "1.2.0", v1alpha1.BakeFailed), blames("Deployment "+s.Namespace+"/"+s.Name), serves)
}

func (s *session) heldRelease(ctx context.Context) error {
	if err := s.push(ctx, s.Release("1.2.1")); err != nil {
		return err
	}
	held := all(heldBack("1.2.1", v1alpha1.PreviousBakeFailedReason), current(3, "1.2.0", v1alpha1.BakeFailed))
	return s.staysHeld(ctx, held)
}

// staysHeld waits until a release is held, looks whether it stays so, and asks why.
func (s *session) staysHeld(ctx context.Context, held expectation) error {
	if err := s.await(ctx, held); err != nil {
		return err
	}
	if err := s.stays(ctx, heldFor, held); err != nil {
		return err
	}
	held.what += fmt.Sprintf(", and it stays so for %s", heldFor)
	s.passed(held)
	return s.rollouts(ctx, "explain", s.Name, "-n", s.Namespace)
}

func (s *session) manualRelease(ctx context.Context) error {
	if err := s.rollouts(ctx, "pin", s.Name, "1.2.1", "-n", s.Namespace, "-m", "it fixes 1.2.0", "-y"); err != nil {
		return err
	}
	if err := s.proves(ctx, 4, "1.2.1"); err != nil {
		return err
	}
	if err := s.rollouts(ctx, "unpin", s.Name, "-n", s.Namespace, "-y"); err != nil {
		return err
	}
	return s.must(ctx, atRest)
}
