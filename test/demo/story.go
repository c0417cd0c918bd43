// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// storyScript is the shortest scenario in which a release is held, approved, baked and
// rolled back. The picture of the README is drawn from it.
var storyScript = script{
	about: "a release that a gate holds, a user approves, and a failed bake rolls back",
	steps: []step{
		{
			title: "The first release",
			intro: "Flux deploys shop 1.0.0. A HealthCheck queries Prometheus for the error rate.",
			play:  (*session).firstMeasured,
		},
		{
			title: "Held, approved, baked, rolled back",
			intro: "1.1.0 is pushed. A gate holds it until it is tested. While it bakes, its requests begin to fail.",
			play:  (*session).storyOfARelease,
		},
	},
	ending: []expectation{
		history("1: 1.0.0 Succeeded", "2: 1.1.0 Failed", "3: 1.0.0 Succeeded"),
		targetsCarry("1.0.0"), runs("registry.example/shop:1.0.0"), atRest,
	},
	commands:  []string{"kubectl rollouts get -n demo", "kubectl rollouts explain shop -n demo"},
	tables:    []schema.GroupVersionResource{v1alpha1.GroupVersion.WithResource("rollouts")},
	questions: [][]string{{"history", "shop", "-n", "demo"}},
	invite:    "See what was measured, for example:",
	command:   "kubectl rollouts status shop -n demo",
	watched:   ofReleases,
	measured:  true,
}

func (s *session) firstMeasured(ctx context.Context) error {
	s.rates.serve(s.plane.Client())
	if err := s.pushFirst(ctx); err != nil {
		return err
	}
	if err := s.create(ctx, s.storyObjects()...); err != nil {
		return err
	}
	return s.proves(ctx, 1, "1.0.0")
}

// storyObjects returns the objects of a Rollout that rolls back, and bakes for long enough
// that two measurements can turn bad meanwhile.
func (s *session) storyObjects() []client.Object {
	objects := s.measuredObjects()
	for _, o := range objects {
		switch o := o.(type) {
		case *v1alpha1.HealthCheck:
			o.Spec.Prometheus.Condition, o.Spec.Prometheus.Baseline = "value <= 0.01", ""
		case *v1alpha1.Rollout:
			o.Spec.BakeTime, o.Spec.Quarantine = seconds(20), nil
		}
	}
	return objects
}

func (s *session) storyOfARelease(ctx context.Context) error {
	if err := s.closeGate(ctx, "qa"); err != nil {
		return err
	}
	if err := s.push(ctx, s.Release("1.1.0")); err != nil {
		return err
	}
	if err := s.must(ctx, heldBack("1.1.0", v1alpha1.SomeGatesBlockingReason)); err != nil {
		return err
	}
	if err := s.rollouts(ctx, "get", "-n", s.Namespace); err != nil {
		return err
	}
	if err := s.rollouts(ctx, "approve", s.Name, "--gate", "qa", "--version", "1.1.0", "-m", "tested", "-n", s.Namespace, "-y"); err != nil {
		return err
	}
	if err := s.await(ctx, current(2, "1.1.0", v1alpha1.BakeInProgress)); err != nil {
		return err
	}
	s.rates.bad.Store("1.1.0")
	return s.must(ctx, history("1: 1.0.0 Succeeded", "2: 1.1.0 Failed", "3: 1.0.0 Succeeded"), runs(s.image("1.0.0")))
}
