// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// expectation is a condition that must become true.
type expectation struct {
	// what describes the expectation.
	what string
	// lacks returns the difference to the expectation. It returns "" if the expectation
	// is met.
	lacks func(*sights) string
}

// all is met when each of the expectations is met.
func all(expectations ...expectation) expectation {
	words := make([]string, 0, len(expectations))
	for _, e := range expectations {
		words = append(words, e.what)
	}
	return expectation{strings.Join(words, ", "), func(s *sights) string {
		var lacks []string
		for _, e := range expectations {
			if lack := e.lacks(s); lack != "" {
				lacks = append(lacks, lack)
			}
		}
		return strings.Join(lacks, "; ")
	}}
}

// current expects that the newest history entry has this version and this state.
func current(id int64, version string, state v1alpha1.BakeStatus) expectation {
	return expectation{fmt.Sprintf("promotion %d, of %s, is %s", id, version, state), func(s *sights) string {
		entry := s.rollout.Current()
		switch {
		case entry == nil:
			return "nothing was promoted"
		case idOf(entry) == id && entry.Version.Tag == version && entry.State() == state:
			return ""
		}
		return fmt.Sprintf("promotion %d, of %s, is %s (%s)", idOf(entry), entry.Version.Tag, entry.State(), reported(entry.BakeStatusMessage))
	}}
}

// runs expects that the Deployment runs the image of this version, and only in ready
// pods.
func runs(image string) expectation {
	return expectation{"the Deployment runs " + image, func(s *sights) string {
		switch is := imageOf(&s.deployment); {
		case is != image:
			return fmt.Sprintf("the Deployment asks for %q", is)
		case updatedAndReady(&s.deployment) == 0:
			return fmt.Sprintf("the Deployment has %d pods ready, %d of %d updated",
				s.deployment.Status.ReadyReplicas, s.deployment.Status.UpdatedReplicas, wanted(&s.deployment))
		}
		return ""
	}}
}

// serves expects that as many pods are ready as the Deployment should have, of any
// version.
var serves = expectation{"as many pods as before are ready and serve", func(s *sights) string {
	if ready := s.deployment.Status.ReadyReplicas; ready < wanted(&s.deployment) {
		return fmt.Sprintf("%d of %d pods are ready", ready, wanted(&s.deployment))
	}
	return ""
}}

// blames expects that the HealthChecks that failed the newest promotion name this object.
func blames(object string) expectation {
	return expectation{"failedHealthChecks name " + object, func(s *sights) string {
		var seen []string
		if entry := s.rollout.Current(); entry != nil {
			for _, failed := range entry.FailedHealthChecks {
				if strings.Contains(reported(failed.Message), object) {
					return ""
				}
				seen = append(seen, reported(failed.Message))
			}
		}
		return fmt.Sprintf("failedHealthChecks say %q", seen)
	}}
}

// closedGate expects that the Rollout shows this gate, and that it is closed. The gate holds
// releases from then on.
func closedGate(name string) expectation {
	return expectation{"RolloutGate " + name + " is closed", func(s *sights) string {
		if !slices.ContainsFunc(s.rollout.Status.Gates, func(g v1alpha1.RolloutGateStatusSummary) bool {
			return g.Name == name && g.Passing != nil && !*g.Passing
		}) {
			return "the Rollout does not show it as closed"
		}
		return ""
	}}
}

// heldBack expects that this version is the newest candidate, that it waits for this
// reason, and that Ready reports this.
func heldBack(version, reason string) expectation {
	return expectation{fmt.Sprintf("%s waits (%s)", version, reason), func(s *sights) string {
		candidates := s.rollout.Status.ReleaseCandidates
		if len(candidates) == 0 || candidates[0].Tag != version {
			return fmt.Sprintf("the candidates are %v", tagsOf(candidates))
		}
		if !slices.ContainsFunc(candidates[0].Holds, func(h v1alpha1.CandidateHold) bool { return h.Reason == reason }) {
			return fmt.Sprintf("it is held by %v", candidates[0].Holds)
		}
		if said := condition(&s.rollout, v1alpha1.ReadyCondition).Message; !strings.Contains(said, version+" waits") {
			return fmt.Sprintf("Ready says %q", said)
		}
		return ""
	}}
}

// atRest expects that the Rollout has finished all its work and has no pin.
var atRest = expectation{"the Rollout is Ready, neither Reconciling nor Stalled, and pinned to nothing", func(s *sights) string {
	conditions := s.rollout.Status.Conditions
	rests := apimeta.IsStatusConditionTrue(conditions, v1alpha1.ReadyCondition) &&
		!apimeta.IsStatusConditionTrue(conditions, v1alpha1.ReconcilingCondition) &&
		!apimeta.IsStatusConditionTrue(conditions, v1alpha1.StalledCondition)
	switch {
	case s.rollout.Pinned() != "":
		return "spec.wantedVersion is " + s.rollout.Pinned()
	case s.rollout.Status.ObservedGeneration != s.rollout.Generation:
		return "the controller has not seen the newest generation"
	case rests:
		return ""
	}
	return fmt.Sprintf("conditions %+v", conditions)
}}

// targetsCarry expects that every target reports this version as applied.
func targetsCarry(version string) expectation {
	return expectation{"every target reports " + version, func(s *sights) string {
		for _, t := range s.rollout.Status.Targets {
			if t.State != v1alpha1.TargetApplied || t.Version != version {
				return fmt.Sprintf("%s %s is %s with %s", t.Kind, t.Name, t.State, t.Version)
			}
		}
		if len(s.rollout.Status.Targets) == 0 || tagOf(&s.ociRepository) != version {
			return fmt.Sprintf("there are %d targets; the OCIRepository pulls %q", len(s.rollout.Status.Targets), tagOf(&s.ociRepository))
		}
		return ""
	}}
}

// history expects these promotions, oldest first.
func history(wanted ...string) expectation {
	return expectation{"the history is " + strings.Join(wanted, ", "), func(s *sights) string {
		entries := s.rollout.Status.History
		seen := make([]string, len(entries))
		for i := range entries {
			e := &entries[len(entries)-1-i]
			seen[i] = fmt.Sprintf("%d: %s %s", idOf(e), e.Version.Tag, e.State())
		}
		if strings.Join(seen, ", ") == strings.Join(wanted, ", ") {
			return ""
		}
		return strings.Join(seen, ", ")
	}}
}

func tagsOf(releases []v1alpha1.ReleaseCandidate) []string {
	tags := make([]string, 0, len(releases))
	for _, r := range releases {
		tags = append(tags, r.Tag)
	}
	return tags
}
