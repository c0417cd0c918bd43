// SPDX-License-Identifier: Apache-2.0

package kustomization

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
	"github.com/fluxrollouts/rollout-controller/internal/workload"
)

const (
	// maxNamed bounds how many objects a message names.
	maxNamed = 5
	// maxObjectMessage bounds what a message quotes of one object.
	maxObjectMessage = 160
)

// judge combines the observed states into one verdict. A known failure takes precedence
// over everything. The first state is the one of the Kustomization or HelmRelease itself, which waits
// for the others. Any object that is not known to be Current keeps the verdict Pending.
// A paused object is pending too: it will be resumed.
func judge(seen []observation) health.Result {
	if failed := inPhase(seen, workload.Failed); len(failed) > 0 {
		result := health.Unhealthy("Failed: "+describe(failed), newest(failed))
		if failedUnstarted(seen) {
			result.Reason = v1alpha1.HealthNotStarted
		}
		return result
	}
	pending := inPhase(seen, workload.Progressing, workload.Held, workload.Terminating)
	unknown := inPhase(seen, workload.Unknown)
	var parts []string
	if len(pending) > 0 {
		parts = append(parts, "Waiting for "+describe(pending))
	}
	if len(unknown) > 0 {
		parts = append(parts, "Could not observe "+describe(unknown))
	}
	if len(parts) > 0 {
		result := health.Pending(strings.Join(parts, ". "))
		result.RecheckAt = earliestRecheck(pending)
		result.Reason = whyPending(inPhase(seen[1:], workload.Progressing, workload.Held, workload.Terminating))
		return result
	}
	return health.Healthy(fmt.Sprintf("%s is applied, and nothing of it is failed or in progress", seen[0].name))
}

// whyPending returns what is known of the applied objects that are pending. If there are
// none, some could not be observed, or Flux itself is not done.
func whyPending(applied []observation) v1alpha1.MeasuringReason {
	switch {
	case len(applied) == 0:
		return v1alpha1.HealthNotObserved
	case isNotStarted(applied):
		return v1alpha1.HealthNotStarted
	}
	return ""
}

// failedUnstarted reports whether what has failed was only not started. helm-controller
// fails when Helm has waited for long enough, and so for whatever is missing.
func failedUnstarted(seen []observation) bool {
	missing := inPhase(seen[1:], workload.Failed)
	if seen[0].Phase == workload.Failed {
		missing = inPhase(seen[1:], workload.Failed, workload.Progressing, workload.Held, workload.Terminating)
	}
	return len(missing) > 0 && isNotStarted(missing)
}

// isNotStarted reports whether nothing of these objects has run and failed.
func isNotStarted(some []observation) bool {
	return !slices.ContainsFunc(some, func(o observation) bool { return !o.NotStarted && o.Phase != workload.Held })
}

func inPhase(seen []observation, phases ...workload.Phase) []observation {
	var some []observation
	for _, o := range seen {
		if slices.Contains(phases, o.Phase) {
			some = append(some, o)
		}
	}
	return some
}

// describe lists objects in a fixed order: a message must not change without a cause,
// because each change is a write.
func describe(seen []observation) string {
	sentences := make([]string, 0, len(seen))
	for _, o := range seen {
		sentences = append(sentences, o.name+": "+shortened(o.Message))
	}
	slices.Sort(sentences)
	if more := len(sentences) - maxNamed; more > 0 {
		sentences = append(sentences[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(sentences, "; ")
}

func shortened(message string) string {
	return truncate.Text(strings.Join(strings.Fields(message), " "), maxObjectMessage)
}

func newest(failed []observation) time.Time {
	var at time.Time
	for _, o := range failed {
		if o.Since.After(at) {
			at = o.Since
		}
	}
	return at
}

func earliestRecheck(pending []observation) time.Time {
	var at time.Time
	for _, o := range pending {
		if !o.RecheckAt.IsZero() && (at.IsZero() || o.RecheckAt.Before(at)) {
			at = o.RecheckAt
		}
	}
	return at
}
