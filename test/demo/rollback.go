// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

const (
	usNamespace = "demo-us"
	// measuredBake is long enough for two measurements.
	measuredBake = 12 * time.Second
)

// rollbackScript is the scenario of a release that raises the error rate. The application
// of the session is that in Europe, which gets releases first.
var rollbackScript = script{
	about: "a release with a high error rate, which goes back by itself and is held elsewhere",
	steps: rollbackSteps,
	ending: []expectation{
		history("1: 1.0.0 Succeeded", "2: 1.1.0 Failed", "3: 1.0.0 Succeeded", "4: 1.1.1 Succeeded"),
		targetsCarry("1.1.1"), runs("registry.example/shop:1.1.1"), atRest,
	},
	commands: []string{
		"kubectl rollouts explain shop --quarantine-scope=Cluster -n " + usNamespace,
		"kubectl get releasequarantines -A",
		"kubectl get healthcheck error-rate -n demo -o yaml",
	},
	tables: []schema.GroupVersionResource{
		v1alpha1.GroupVersion.WithResource("rollouts"), v1alpha1.GroupVersion.WithResource("releasequarantines"),
	},
	questions: [][]string{{"history", "shop", "-n", "demo"}, {"history", "shop", "-n", usNamespace}},
	invite:    "See what each region measured, for example:",
	command:   "kubectl rollouts status shop -n demo",
	watched:   append([]client.Object{&v1alpha1.ReleaseQuarantine{}}, ofReleases...),
	other:     environment{usNamespace, us},
	measured:  true,
	args:      []string{"--quarantine-scope=Cluster"},
}

var rollbackSteps = []step{
	{
		title: "Two regions, and a Prometheus",
		intro: "Europe and the US run shop 1.0.0, in two namespaces. A HealthCheck asks Prometheus for the error rate of the version " +
			"that was promoted, and compares it with the version before.",
		play: (*session).firstInRegions,
	},
	{
		title: "A release that raises the error rate",
		intro: "1.1.0 is pushed, and Europe takes it. Its pods are ready and Flux is content, but more requests fail than before. " +
			"The bake fails, and nobody has to wake up: the Rollout goes back to the last release that was proven here.",
		play: (*session).goesBack,
	},
	{
		title: "The other region is held",
		intro: "The US find 1.1.0 only now. Going back has helped in Europe, so this release was the cause. Its digest is in " +
			"quarantine, for every Rollout that could take it.",
		play: (*session).heldInUS,
	},
	{
		title: "The fix goes out by itself",
		intro: "1.1.1 is another digest, and newer than what failed. Nobody has to unblock anything.",
		play:  (*session).fixedEverywhere,
	},
}

func (s *session) firstInRegions(ctx context.Context) error {
	s.rates.bad.Store("1.1.0")
	s.rates.serve(s.plane.Client())
	digest, err := s.plane.Registry.Push(ctx, s.Release("1.0.0"))
	if err != nil {
		return fmt.Errorf("push 1.0.0: %w", err)
	}
	s.printer.show(
		says(registry, plain, "has a first artifact, %s:1.0.0 (%s)", s.Name, short(digest)),
		says(you, plain, "create the Flux objects, a HealthCheck and the Rollout in %s and in %s", s.Namespace, usNamespace))
	there := session{demo: s.demo, App: s.otherApp()}
	if err := s.create(ctx, append(s.measuredObjects(), there.measuredObjects()...)...); err != nil {
		return err
	}
	if err := s.proves(ctx, 1, "1.0.0"); err != nil {
		return err
	}
	return s.isInUS(ctx, "1.0.0")
}

// measuredObjects returns the objects of a region. Its Rollout goes back by itself, reports
// what failed, and is judged by the error rate.
func (s *session) measuredObjects() []client.Object {
	objects := s.objectsOf(measuredBake)
	for i, o := range objects {
		switch o := o.(type) {
		case *v1alpha1.HealthCheck:
			objects[i] = s.errorRate()
		case *v1alpha1.Rollout:
			o.Spec.Rollback = &v1alpha1.RolloutRollback{}
			o.Spec.Quarantine = &v1alpha1.RolloutQuarantine{}
		}
	}
	return objects
}

// errorRate returns a HealthCheck that compares the error rate with that of the release
// before.
func (s *session) errorRate() *v1alpha1.HealthCheck {
	check, class := s.HealthCheck(), v1alpha1.HealthCheckClassPrometheus
	check.Name, check.Annotations = "error-rate", nil
	check.Spec = v1alpha1.HealthCheckSpec{
		Class:         &class,
		MeasuringSpec: v1alpha1.MeasuringSpec{Interval: seconds(5), Delay: seconds(3), FailureThreshold: 2},
		Prometheus: &v1alpha1.PrometheusSpec{
			Query:     `error_rate{namespace="$(namespace)",version="$(version)"}`,
			Condition: "value <= 0.01 || value <= baseline.orValue(0.01) * 2.0",
			Baseline:  v1alpha1.BaselineBeforePromotion,
		},
	}
	return check
}

func seconds(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Second}
}

func (s *session) goesBack(ctx context.Context) error {
	if err := s.push(ctx, s.Release("1.1.0")); err != nil {
		return err
	}
	if err := s.must(ctx, history("1: 1.0.0 Succeeded", "2: 1.1.0 Failed", "3: 1.0.0 Succeeded"), runs(s.image("1.0.0")), inQuarantine); err != nil {
		return err
	}
	return s.rollouts(ctx, "explain", s.Name, "-n", s.Namespace)
}

// inQuarantine expects that the release that failed is held.
var inQuarantine = expectation{"its digest is in quarantine", func(seen *sights) string {
	if is := seen.quarantine.Status.Phase; is != v1alpha1.QuarantineHeld {
		return fmt.Sprintf("the quarantine is %q", is)
	}
	return ""
}}

func (s *session) heldInUS(ctx context.Context) error {
	if err := s.scanOther(ctx); err != nil {
		return err
	}
	held := all(heldBack("1.1.0", v1alpha1.QuarantinedReason), current(1, "1.0.0", v1alpha1.BakeSucceeded))
	if err := s.beyond.await(ctx, held); err != nil {
		return err
	}
	if err := s.beyond.stays(ctx, heldFor, held); err != nil {
		return err
	}
	held.what += fmt.Sprintf(" in the US, and it stays so for %s", heldFor)
	s.passed(held)
	return s.rollouts(ctx, "explain", s.Name, "-n", usNamespace, "--quarantine-scope=Cluster")
}

func (s *session) fixedEverywhere(ctx context.Context) error {
	if err := s.push(ctx, s.Release("1.1.1")); err != nil {
		return err
	}
	if err := s.scanOther(ctx); err != nil {
		return err
	}
	if err := s.proves(ctx, 4, "1.1.1"); err != nil {
		return err
	}
	return s.isInUS(ctx, "1.1.1")
}

// isInUS waits until a version has succeeded in the US, and was never preceded by another
// one than the first.
func (s *session) isInUS(ctx context.Context, version string) error {
	entries := []string{"1: 1.0.0 Succeeded"}
	if version != "1.0.0" {
		entries = append(entries, "2: "+version+" Succeeded")
	}
	proven := history(entries...)
	if err := s.beyond.await(ctx, proven); err != nil {
		return err
	}
	proven.what = "in the US, " + proven.what
	s.passed(proven)
	return nil
}
