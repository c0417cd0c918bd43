// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/mattn/go-runewidth"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// cause is something that keeps a release from being deployed, or that keeps the Rollout
// from knowing that it is.
type cause struct {
	// arrange creates the application, and waits until the Rollout shows the cause. It
	// returns what each answer must say.
	arrange func(s *env.Env) string
	// state is that of the release then.
	state v1alpha1.BakeStatus
}

// Each answer says the cause, and fits on one screen.
func TestEveryAnswerSaysTheCause(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]cause{
		"the consumer is in another namespace": {arrange: consumedElsewhere, state: v1alpha1.BakeSucceeded},
		"there is no consumer":                 {arrange: notConsumed, state: v1alpha1.BakeSucceeded},
		"a dependency does not exist":          {arrange: dependencyMissing, state: v1alpha1.BakeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			says := tt.arrange(s)
			s.AwaitState("1.0.0", tt.state)
			user := s.CommandLine(s.Namespace+":vera", masters)
			kubectl := under(t, user, "kubectl")
			for question, answer := range map[string]env.Answer{
				"kubectl get rollout": kubectl("get", "rollout", s.Name),
				"explain":             user.Run("explain", s.Name),
				"status":              user.Run("status", s.Name),
			} {
				onOneScreen(t, question, answer.Stdout+answer.Stderr, says)
			}
		})
	}
}

// onOneScreen checks that an answer says something, on a terminal of 80 columns and 24
// lines.
func onOneScreen(t *testing.T, question, answer, says string) {
	t.Helper()
	const columns, lines = 80, 24
	needed := 0
	for line := range strings.Lines(answer) {
		needed += 1 + max(runewidth.StringWidth(strings.TrimRight(line, " \n"))-1, 0)/columns
	}
	if needed > lines {
		t.Errorf("%s needs %d lines of %d columns, and a screen has %d:\n%s", question, needed, columns, lines, answer)
	}
	if !strings.Contains(strings.Join(strings.Fields(answer), " "), says) {
		t.Errorf("%s does not say %q:\n%s", question, says, answer)
	}
}

// withoutConsumer creates the namespace and all Flux objects of the application, without
// the Kustomization.
func withoutConsumer(s *env.Env) {
	s.T.Helper()
	for _, o := range s.Flux(s.Plane.Registry.Host()) {
		if _, consumes := o.(*kustomizev1.Kustomization); !consumes {
			s.Create(o)
		}
	}
}

// elsewhere creates another namespace, and returns a Kustomization in it that consumes the
// OCIRepository of the application and cannot be applied.
func elsewhere(s *env.Env) *kustomizev1.Kustomization {
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-b"}}
	s.Create(other)
	consumer := s.Kustomization()
	consumer.Namespace, consumer.Spec.TargetNamespace = other.Name, other.Name
	consumer.Spec.SourceRef.Namespace, consumer.Spec.Path = s.Namespace, "./no-such-folder"
	return consumer
}

func consumedElsewhere(s *env.Env) string {
	withoutConsumer(s)
	consumer := elsewhere(s)
	s.Create(consumer, s.Rollout(baked(time.Second)))
	s.Publish(s.Release("1.0.0"))
	says := "Kustomization " + client.ObjectKeyFromObject(consumer).String() + " applies it from another namespace, and is not waited for"
	awaitReady(s, "1.0.0: pulled for the bake time of 1s", says)
	return says
}

func notConsumed(s *env.Env) string {
	withoutConsumer(s)
	s.Create(s.Rollout(baked(time.Second)))
	s.Publish(s.Release("1.0.0"))
	const says = "in this namespace applies it, so it counts as applied once Flux has pulled it"
	awaitReady(s, "1.0.0: pulled for the bake time of 1s", says)
	return says
}

func dependencyMissing(s *env.Env) string {
	s.CreateFlux()
	k := s.Kustomization()
	s.Change(k, func() { k.Spec.DependsOn = []kustomizev1.DependencyReference{{Name: "database"}} })
	s.Create(s.Rollout(func(spec *v1alpha1.RolloutSpec) { spec.DeployTimeout = &metav1.Duration{Duration: 20 * time.Second} }))
	s.Publish(s.Release("1.0.0"))
	says := "dependency '" + s.Namespace + "/database' not found"
	s.Await("the cause, before the deadline", func(r *v1alpha1.Rollout) bool {
		return r.Current().State() == v1alpha1.BakeDeploying && strings.Contains(env.Condition(r, v1alpha1.ReadyCondition), says) &&
			strings.Contains(env.Condition(r, v1alpha1.TargetsAppliedCondition), says)
	})
	failed := s.AwaitState("1.0.0", v1alpha1.BakeFailed)
	if why := *failed.Current().BakeStatusMessage; !strings.Contains(why, says) {
		s.T.Errorf("the history says %q, which does not say %q", why, says)
	}
	return says
}

// baked returns an option that makes releases bake without any HealthCheck.
func baked(bake time.Duration) func(*v1alpha1.RolloutSpec) {
	return func(spec *v1alpha1.RolloutSpec) { spec.BakeTime = &metav1.Duration{Duration: bake} }
}

// awaitReady waits until the message of Ready contains these parts.
func awaitReady(s *env.Env, parts ...string) {
	s.T.Helper()
	s.Await(strings.Join(parts, ", "), func(r *v1alpha1.Rollout) bool {
		ready := env.Condition(r, v1alpha1.ReadyCondition)
		for _, part := range parts {
			if !strings.Contains(ready, part) {
				return false
			}
		}
		return true
	})
}

// Once the consumer exists, nothing is said of it any more, and it counts as evidence. When
// it goes, that is said once.
func TestConsumerThatAppearsIsFollowedAndItsLossIsSaidOnce(t *testing.T) {
	s := newEnv(t)
	notConsumed(s)
	consumer := s.Kustomization()
	s.Create(consumer)
	s.Await("a target that is the consumer, and nothing about consumers", func(r *v1alpha1.Rollout) bool {
		return strings.HasSuffix(env.Condition(r, v1alpha1.TargetsAppliedCondition), "applied 1.0.0 to 2 targets") &&
			!strings.Contains(env.Condition(r, v1alpha1.ReadyCondition), "in this namespace applies it")
	})
	s.Publish(s.Release("1.1.0"))
	promoted := s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	if said := *promoted.Current().BakeStatusMessage; said != "applied for the bake time of 1s" {
		t.Errorf("the history says %q", said)
	}

	s.Delete(consumer)
	lost := s.AwaitEvents(s.Rollout(), v1alpha1.ConsumerLostReason)
	awaitReady(s, "in this namespace applies it")
	if got := s.AwaitEvents(s.Rollout(), v1alpha1.ConsumerLostReason); len(got) != len(lost) || len(lost) != 1 {
		t.Errorf("the events are %q, want one", got)
	}
}

// One in another namespace is named as long as it exists, whatever Flux says of it.
func TestConsumerOfAnotherNamespaceIsNamedWhileItExists(t *testing.T) {
	s := newEnv(t)
	notConsumed(s)
	consumer := elsewhere(s)
	s.Create(consumer)
	named := "Kustomization " + client.ObjectKeyFromObject(consumer).String() + " applies it from another namespace"
	awaitReady(s, named)
	env.Eventually(t, "a failure of the consumer", func() (bool, string) {
		s.Read(consumer)
		failed := apimeta.IsStatusConditionFalse(consumer.Status.Conditions, "Ready")
		return failed, env.ConditionOf(consumer.Status.Conditions, "Ready")
	})
	s.Stays("named, and successful", func(r *v1alpha1.Rollout) bool {
		ready := env.Condition(r, v1alpha1.ReadyCondition)
		return strings.HasPrefix(ready, "Ready=True") && strings.Contains(ready, named)
	})
	s.Delete(consumer)
	awaitReady(s, "in this namespace applies it")
}
