// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

func TestRunningReleaseIsAdoptedWhenTheHistoryIsLost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*env.Env){
		"the status was emptied": func(s *env.Env) {
			rollout := s.Rollout()
			s.ChangeStatus(rollout, func() { rollout.Status = v1alpha1.RolloutStatus{} })
		},
		"the Rollout was deleted and created again": func(s *env.Env) {
			s.Delete(s.Rollout())
			s.Create(s.Rollout())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newEnv(t)
			gate := closedGate(s)
			s.CreateFlux()
			s.Create(s.Rollout())
			s.Publish(s.ConfigRelease("1.0.0"))
			s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
			s.Create(gate)
			s.AwaitClosed()
			s.Publish(s.ConfigRelease("1.1.0"))
			s.AwaitCandidate("1.1.0")
			before, lostAt := generations(s), time.Now()

			lose(s)
			adopted := s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
			if entries := adopted.Status.History; len(entries) != 1 || *entries[0].ID < lostAt.Unix() {
				t.Fatalf("history %v: want one entry with an id from %d on", env.History(adopted), lostAt.Unix())
			}
			s.AwaitCandidate("1.1.0")
			s.Stays("at 1.0.0 behind the gate", func(r *v1alpha1.Rollout) bool { return len(r.Status.History) == 1 })
			if diff := cmp.Diff(before, generations(s)); diff != "" {
				t.Errorf("targets were written, generations (-before +after):\n%s", diff)
			}

			s.Change(gate, func() { gate.Spec.Passing = new(true) })
			promoted := s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
			if got, want := *promoted.Current().ID, *adopted.Current().ID+1; got != want {
				t.Errorf("the next id is %d, want %d", got, want)
			}
		})
	}
}

func closedGate(s *env.Env) *v1alpha1.RolloutGate {
	return &v1alpha1.RolloutGate{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: "freeze"},
		Spec: v1alpha1.RolloutGateSpec{
			RolloutRef: &v1alpha1.LocalObjectReference{Name: s.Name},
			Passing:    new(false),
		},
	}
}

// generations returns how often the specs of the targets have been changed.
func generations(s *env.Env) map[string]int64 {
	repository, kustomization := s.OCIRepository(""), s.Kustomization()
	s.Read(repository)
	s.Read(kustomization)
	return map[string]int64{"OCIRepository": repository.Generation, "Kustomization": kustomization.Generation}
}

// The controller adopts an application that was deployed without it, and changes nothing.
// It needs only its default rights and the status that Flux reports.
func TestFirstReleaseAppliedBeginsWithWhatFluxHasApplied(t *testing.T) {
	s := newEnv(t)
	gate := closedGate(s)
	s.CreateFlux()
	s.Publish(s.ConfigRelease("1.0.0"))
	repository := s.OCIRepository("")
	s.Read(repository)
	s.Change(repository, func() { repository.Spec.Reference = &sourcev1.OCIRepositoryRef{Tag: "1.0.0"} })
	s.Push(s.ConfigRelease("1.1.0"))
	rollout := s.Rollout()
	rollout.Spec.FirstRelease = v1alpha1.FirstReleaseApplied
	s.Create(gate, rollout)

	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	s.Scan()
	adopted := s.AwaitCandidate("1.1.0")
	if entries := adopted.Status.History; len(entries) != 1 || *entries[0].ID != 1 || entries[0].Version.Digest == nil {
		t.Fatalf("history %v: want one entry, the first, with what Flux has pulled", env.History(adopted))
	}
	s.Stays("at 1.0.0 behind the gate", func(r *v1alpha1.Rollout) bool { return len(r.Status.History) == 1 })

	s.Change(gate, func() { gate.Spec.Passing = new(true) })
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
}
