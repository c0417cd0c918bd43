// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// nowhere is an address that refuses every connection.
const nowhere = "127.0.0.1:1"

// mistake is something in the cluster that keeps release 1.0.0 from being deployed until
// it is fixed.
type mistake struct {
	make, fix func(*env.Env)
	// condition is the beginning of the condition, as "Type=Status Reason: ".
	condition string
	// event is the beginning of the event, as "Type Reason: ".
	event string
	// says are words in both of them: the problem, and the action to take.
	says []string
}

var mistakes = map[string]mistake{
	"ref.semver next to the tag": {
		make: func(s *env.Env) {
			offer(s)
			refer(s, sourcev1.OCIRepositoryRef{SemVer: ">=1.0.0"})
		},
		fix:       func(s *env.Env) { refer(s, sourcev1.OCIRepositoryRef{}) },
		condition: "TargetsApplied=False TargetConflict: ",
		event:     "Warning TargetConflict: ",
		says:      []string{"OCIRepository shop", "spec.ref.semver", "remove it"},
	},
	"ref.digest next to the tag": {
		make: func(s *env.Env) {
			offer(s)
			refer(s, sourcev1.OCIRepositoryRef{Digest: s.Push(s.ConfigRelease("0.9.0"))})
		},
		fix:       func(s *env.Env) { refer(s, sourcev1.OCIRepositoryRef{}) },
		condition: "TargetsApplied=False TargetConflict: ",
		event:     "Warning TargetConflict: ",
		says:      []string{"OCIRepository shop", "spec.ref.digest", "remove it"},
	},
	"a variable that Flux does not accept": {
		make: func(s *env.Env) {
			offer(s)
			annotate(s, substituteFrom("1ST"), s.Name)
		},
		fix:       func(s *env.Env) { annotate(s, substituteFrom("1ST"), "") },
		condition: "TargetsApplied=False TargetConflict: ",
		event:     "Warning TargetConflict: ",
		says:      []string{"Kustomization shop", `"1ST"`, "rename the annotation"},
	},
	"a registry that cannot be reached": {
		make: func(s *env.Env) {
			s.Push(s.ConfigRelease("1.0.0"))
			scan(s, nowhere)
			awaitRefusal(s)
		},
		fix:       func(s *env.Env) { scan(s, plane.Registry.Host()) },
		condition: "ReleasesUpdated=False ImagePolicyNotReady: ",
		event:     "Warning ImagePolicyNotReady: ImageRepository ", // the ImagePolicy may report that it is not up to date yet
		says:      []string{nowhere, "ImageRepository", "connection refused"},
	},
	"no ImagePolicy": {
		make: func(s *env.Env) {
			offer(s) // otherwise the policy would first report that it has no tags yet
			deletePolicy(s)
		},
		fix:       func(s *env.Env) { s.Create(s.ImagePolicy(">=1.0.0")) },
		condition: "ReleasesUpdated=False ImagePolicyNotFound: ",
		event:     "Warning ImagePolicyNotFound: ",
		says:      []string{"/shop does not exist", "create it"},
	},
}

func TestBadInputIsNamedOnceBlocksNothingElseAndIsFixed(t *testing.T) {
	t.Parallel()
	for name, mistake := range mistakes {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			s.CreateFlux()
			mistake.make(s)
			s.Create(s.Rollout())
			s.Await(mistake.condition, func(r *v1alpha1.Rollout) bool {
				return saysAll(conditionsOf(r), mistake.condition, mistake.says)
			})

			neighbour := s.Another("till")
			neighbour.Create(neighbour.Flux(plane.Registry.Host())[1:]...) // the namespace exists already
			neighbour.Create(neighbour.Rollout())
			neighbour.Publish(neighbour.ConfigRelease("1.0.0"))
			neighbour.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
			if current := s.Live().Current(); current != nil && current.State() == v1alpha1.BakeSucceeded {
				t.Errorf("1.0.0 counts as deployed while it is not")
			}
			warnings := warningsOf(s)
			if len(warnings) != 1 || !saysAll(warnings, mistake.event, mistake.says) {
				t.Errorf("warnings: %q, want one that says %s… %q", warnings, mistake.event, mistake.says)
			}

			mistake.fix(s)
			s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
			s.Await("Ready", func(r *v1alpha1.Rollout) bool {
				return strings.HasPrefix(env.Condition(r, v1alpha1.ReadyCondition), "Ready=True ")
			})
			if again := reported(s.Events(s.Rollout()), mistake.event); len(again) != 1 {
				t.Errorf("reported %d times: %q", len(again), again)
			}
		})
	}
}

func TestHealthCheckOfAMissingKustomizationHoldsReleasesBackUntilFixed(t *testing.T) {
	s := newEnv(t)
	s.CreateFlux()
	offer(s)
	s.Create(s.Rollout(s.Baked(0, time.Minute)))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)

	check := s.HealthCheck()
	check.Annotations[v1alpha1.KustomizationAnnotation] = "nonesuch"
	s.Create(check)
	says := []string{s.Namespace + "/" + s.Name}
	s.Await("the block", func(r *v1alpha1.Rollout) bool {
		return saysAll(conditionsOf(r), "DeploymentBlocked=True UnhealthyHealthChecks: ", says)
	})
	s.Publish(s.ConfigRelease("1.1.0"))
	s.AwaitCandidate("1.1.0")
	s.Stays("at 1.0.0", isHistory("1 1.0.0 Succeeded"))
	s.Read(check)
	if !saysAll([]string{*check.Status.Message}, "Kustomization ", []string{"/nonesuch does not exist", "create it"}) {
		t.Errorf("the check says %q", *check.Status.Message)
	}

	s.Change(check, func() { check.Annotations[v1alpha1.KustomizationAnnotation] = s.Name })
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	if warnings := warningsOf(s); len(warnings) != 1 || !saysAll(warnings, "Warning HealthCheckBlocking: ", says) {
		t.Errorf("warnings: %q, want one that names the check", warnings)
	}
}

func TestTargetThatNamesNoRolloutIsReportedOnce(t *testing.T) {
	s := newEnv(t)
	s.CreateFlux()
	env.Eventually(t, "the event", func() (bool, string) {
		events := s.Events(s.OCIRepository(""))
		return saysAll(events, "Warning RolloutNotFound: ", []string{s.Namespace + "/shop", "create it"}), strings.Join(events, "\n")
	})

	annotate(s, "example.com/touched", "yes") // neither this nor Flux's own writes are a reason for another event
	s.Create(s.Rollout())
	s.Publish(s.ConfigRelease("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	if events := s.Events(s.OCIRepository("")); len(events) != 1 {
		t.Errorf("events of the OCIRepository: %q, want one", events)
	}
}

// warningsOf returns the warnings about the Rollout.
func warningsOf(s *env.Env) []string { return reported(s.Events(s.Rollout()), "Warning ") }

// offer publishes 1.0.0 and waits until the ImagePolicy names it.
func offer(s *env.Env) {
	s.Publish(s.ConfigRelease("1.0.0"))
	s.AwaitOffer("1.0.0")
}

// deletePolicy deletes the ImagePolicy and waits until the controller has seen that it is
// gone, which another Rollout shows. Otherwise a new Rollout might still be offered the
// release.
func deletePolicy(s *env.Env) {
	s.T.Helper()
	witness := s.Rollout()
	witness.Name = "witness"
	s.Create(witness)
	s.Delete(s.ImagePolicy(""))
	env.Eventually(s.T, "a Rollout that misses its ImagePolicy", func() (bool, string) {
		s.Read(witness)
		seen := env.Condition(witness, v1alpha1.ReleasesUpdatedCondition)
		return strings.Contains(seen, v1alpha1.ImagePolicyNotFoundReason), seen
	})
}

// refer sets the reference of the OCIRepository, except its tag.
func refer(s *env.Env, ref sourcev1.OCIRepositoryRef) {
	repository := s.OCIRepository("")
	s.Change(repository, func() {
		if repository.Spec.Reference != nil {
			ref.Tag = repository.Spec.Reference.Tag
		}
		repository.Spec.Reference = &ref
	})
}

// annotate sets an annotation of the Kustomization, or removes it.
func annotate(s *env.Env, key, value string) {
	kustomization := s.Kustomization()
	s.Change(kustomization, func() {
		if kustomization.Annotations == nil {
			kustomization.Annotations = map[string]string{}
		}
		kustomization.Annotations[key] = value
		if value == "" {
			delete(kustomization.Annotations, key)
		}
	})
}

// scan makes the ImageRepository scan a registry.
func scan(s *env.Env, host string) {
	repository := s.ImageRepository("")
	s.Change(repository, func() { repository.Spec.Image = host + "/" + s.Repository })
}

// awaitRefusal waits until Flux reports that the registry does not answer.
func awaitRefusal(s *env.Env) {
	repository := s.ImageRepository("")
	env.Eventually(s.T, "a refused scan", func() (bool, string) {
		s.Read(repository)
		ready := apimeta.FindStatusCondition(repository.Status.Conditions, v1alpha1.ReadyCondition)
		return ready != nil && strings.Contains(ready.Message, nowhere), fmt.Sprintf("%+v", ready)
	})
}

func conditionsOf(r *v1alpha1.Rollout) []string {
	var all []string
	for _, c := range r.Status.Conditions {
		all = append(all, env.Condition(r, c.Type))
	}
	return all
}

// reported returns the lines that begin with a text.
func reported(lines []string, beginning string) []string {
	var some []string
	for _, line := range lines {
		if strings.HasPrefix(line, beginning) {
			some = append(some, line)
		}
	}
	return some
}

// saysAll reports whether a line begins with a text and contains all words.
func saysAll(lines []string, beginning string, words []string) bool {
	for _, line := range reported(lines, beginning) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			return true
		}
	}
	return false
}
