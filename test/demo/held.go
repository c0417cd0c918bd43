// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
)

// heldScript is the scenario of a release that waits, and of a user who asks why.
var heldScript = script{
	about: "a release that a gate, a freeze and a failed check hold, one after the other",
	steps: heldSteps,
	ending: []expectation{
		history("1: 1.0.0 Succeeded", "2: 1.1.0 Succeeded"),
		targetsCarry("1.1.0"), runs("registry.example/shop:1.1.0"), atRest,
	},
	commands: []string{
		"kubectl rollouts explain shop -n demo",
		"kubectl rollouts simulate shop -n demo --next 7d",
		"kubectl rollouts freeze -n demo",
	},
	tables:    []schema.GroupVersionResource{v1alpha1.GroupVersion.WithResource("rollouts")},
	questions: [][]string{{"status", "shop", "-n", "demo"}, {"history", "shop", "-n", "demo"}},
	invite:    "Send shop back, for example:",
	command:   `kubectl rollouts rollback shop -n demo -m "1.1.0 is slow"`,
	watched:   ofReleases,
}

var heldSteps = []step{
	{
		title: "The first release",
		intro: "Flux deploys shop 1.0.0, and it proves itself for a bake time of " + bakeTime.String() + ".",
		play:  (*session).firstRelease,
	},
	{
		title: "A gate holds the next one",
		intro: "Somebody has to test before production: a RolloutGate lets nothing through. Then 1.1.0 is pushed. " +
			"The question is: why is it not out?",
		play: (*session).gatedRelease,
	},
	{
		title: "A freeze holds it, too",
		intro: "There is an incident elsewhere, and nothing may go out. What would happen if the gate opened now?",
		play:  (*session).frozenRelease,
	},
	{
		title: "And a failed check",
		intro: "A HealthCheck of another team reports a problem. Each hold has its own line, and each command that is " +
			"suggested was tried first.",
		play: (*session).unhealthyRelease,
	},
	{
		title: "Let it go",
		intro: "The check recovers, the tests are done, and the incident is over. The release goes out by itself, as " +
			"soon as nothing holds it any more.",
		play: (*session).releasedRelease,
	},
}

// closeGate creates a gate that holds every release.
func (s *session) closeGate(ctx context.Context, name string) error {
	s.printer.show(says(you, plain, "create RolloutGate %s, which lets nothing through", name))
	gate := &v1alpha1.RolloutGate{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: name}}
	gate.Spec.RolloutRef, gate.Spec.Passing = &v1alpha1.LocalObjectReference{Name: s.Name}, new(false)
	if err := s.create(ctx, gate); err != nil {
		return err
	}
	return s.await(ctx, closedGate(name))
}

func (s *session) gatedRelease(ctx context.Context) error {
	if err := s.closeGate(ctx, "qa"); err != nil {
		return err
	}
	if err := s.push(ctx, s.Release("1.1.0")); err != nil {
		return err
	}
	if err := s.must(ctx, heldBack("1.1.0", v1alpha1.SomeGatesBlockingReason)); err != nil {
		return err
	}
	return s.rollouts(ctx, "explain", s.Name, "-n", s.Namespace)
}

func (s *session) frozenRelease(ctx context.Context) error {
	if err := s.rollouts(ctx, "freeze", "--all", "-n", s.Namespace, "-m", "INC-4711"); err != nil {
		return err
	}
	if err := s.must(ctx, heldBack("1.1.0", v1alpha1.ScheduleClosedReason)); err != nil {
		return err
	}
	return s.rollouts(ctx, "simulate", s.Name, "-n", s.Namespace, "--gate", "qa=open")
}

func (s *session) unhealthyRelease(ctx context.Context) error {
	check := s.smokeCheck()
	s.printer.show(says(you, plain, "create HealthCheck smoke, which reports a problem"))
	if err := s.create(ctx, check); err != nil {
		return err
	}
	if err := s.report(ctx, v1alpha1.HealthStatusUnhealthy, "the payment service answers with 502"); err != nil {
		return err
	}
	if err := s.must(ctx, heldBack("1.1.0", v1alpha1.UnhealthyHealthChecksReason)); err != nil {
		return err
	}
	return s.rollouts(ctx, "explain", s.Name, "-n", s.Namespace, "--version", "1.1.0")
}

func (s *session) releasedRelease(ctx context.Context) error {
	if err := s.report(ctx, v1alpha1.HealthStatusHealthy, ""); err != nil {
		return err
	}
	for _, command := range [][]string{
		{"approve", s.Name, "-n", s.Namespace, "--gate", "qa", "--version", "1.1.0", "-y"},
		{"unfreeze", "--all", "-n", s.Namespace, "-y"},
	} {
		if err := s.rollouts(ctx, command...); err != nil {
			return err
		}
	}
	if err := s.wasReset(ctx); err != nil {
		return err
	}
	if err := s.report(ctx, v1alpha1.HealthStatusHealthy, ""); err != nil {
		return err
	}
	if err := s.proves(ctx, 2, "1.1.0"); err != nil {
		return err
	}
	return s.removeCheck(ctx)
}

// removeCheck deletes the check. From here on nobody writes its status, and each promotion
// of a user would wait for it until its deadline.
func (s *session) removeCheck(ctx context.Context) error {
	s.printer.show(says(you, plain, "delete HealthCheck smoke, which nobody reports to any more"))
	if err := s.plane.Client().Delete(ctx, s.smokeCheck()); err != nil {
		return fmt.Errorf("delete HealthCheck smoke: %w", err)
	}
	return nil
}

// smokeCheck returns a HealthCheck whose status the demo writes.
func (s *session) smokeCheck() *v1alpha1.HealthCheck {
	check, class := s.HealthCheck(), "demo"
	check.Name, check.Annotations, check.Spec.Class = "smoke", nil, &class
	return check
}

// report writes the status of the check, as its writer does.
func (s *session) report(ctx context.Context, status v1alpha1.HealthStatus, message string) error {
	check := s.smokeCheck()
	if err := s.plane.Client().Get(ctx, client.ObjectKeyFromObject(check), check); err != nil {
		return fmt.Errorf("read HealthCheck smoke: %w", err)
	}
	before := check.DeepCopy()
	check.Status.Status, check.Status.Message = status, &message
	if status == v1alpha1.HealthStatusUnhealthy {
		check.Status.LastErrorTime = &metav1.Time{Time: time.Now()}
	}
	if err := s.plane.Client().Status().Patch(ctx, check, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("report a status of HealthCheck smoke: %w", err)
	}
	return nil
}

// wasReset waits until the check was reset for the promotion of 1.1.0: what it reported
// before counts for 1.0.0.
func (s *session) wasReset(ctx context.Context) error {
	return s.await(ctx, expectation{"HealthCheck smoke was reset", func(seen *sights) string {
		check, current := s.smokeCheck(), seen.rollout.Current()
		if err := s.plane.Client().Get(ctx, client.ObjectKeyFromObject(check), check); err != nil {
			return err.Error()
		}
		mark := check.Annotations[v1alpha1.ResetAnnotationPrefix+string(seen.rollout.UID)]
		if current == nil || current.Version.Tag != "1.1.0" || !strings.HasPrefix(mark, evidence.ResetMark(current, nil)) || strings.HasSuffix(mark, "/begun") {
			return fmt.Sprintf("its mark is %q", mark)
		}
		return ""
	}})
}
