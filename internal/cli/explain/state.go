// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/rolloutstatus"
)

// State is how a Rollout is doing, in one word and in one sentence.
type State struct {
	Kind Kind `json:"kind"`
	// Cause is why, in the words of the controller.
	Cause string `json:"cause"`
}

// Kind is how a Rollout is doing. Of what is true at once, the one that matters most.
type Kind string

const (
	// StateSuspended: a user has stopped everything.
	StateSuspended Kind = "Suspended"
	// StateFailed: the current release has failed.
	StateFailed Kind = "Failed"
	// StateStalled: nothing happens until somebody corrects something.
	StateStalled Kind = "Stalled"
	// StateDeploying: targets have not applied the current release, or are not healthy.
	StateDeploying Kind = "Deploying"
	// StateBaking: the current release must stay healthy for a while.
	StateBaking Kind = "Baking"
	// StateWaiting: nothing is deployed, or something cannot be read, and that may end by itself.
	StateWaiting Kind = "Waiting"
	// StateHeld: something holds the newest candidate.
	StateHeld Kind = "Held"
	// StateGoes: nothing holds the newest candidate.
	StateGoes Kind = "Goes"
	// StateUnseen: newer releases may not be known.
	StateUnseen Kind = "Unseen"
	// StateUpToDate: there is no newer release.
	StateUpToDate Kind = "UpToDate"
)

// StateOf returns the state that the controller has stored.
func StateOf(rollout *v1alpha1.Rollout) State {
	for _, is := range states {
		if state, ok := is(rollout); ok {
			return state
		}
	}
	return State{StateUpToDate, "up to date" + pinned(rollout)}
}

// StateNow returns the state that the controller would store now, before it promotes
// anything.
func StateNow(in promotion.Input, d promotion.Decision) State {
	if d.Action.Promotes() {
		d.Action = promotion.Nothing
	}
	status, err := rolloutstatus.After(in, d)
	if err != nil { // the history does not allow the decision, and the controller will not store it
		return StateOf(in.Rollout)
	}
	now := *in.Rollout
	now.Status = *status
	return StateOf(&now)
}

// states are the states from the one that matters most.
var states = []func(*v1alpha1.Rollout) (State, bool){suspended, stalled, failed, running, notReady, candidate, unseen}

func suspended(r *v1alpha1.Rollout) (State, bool) {
	return State{StateSuspended, "resume" + whoSuspended(r)}, r.Spec.Suspend
}

// whoSuspended says who has suspended a Rollout, when and why; empty if nobody said so.
func whoSuspended(r *v1alpha1.Rollout) string {
	text := ""
	for _, part := range [][2]string{
		{" since ", v1alpha1.SuspendedAtAnnotation}, {" by ", v1alpha1.SuspendedByAnnotation}, {": ", v1alpha1.SuspendedReasonAnnotation},
	} {
		if value := r.Annotations[part[1]]; value != "" {
			text += part[0] + value
		}
	}
	if text == "" {
		return ""
	}
	return " (suspended" + text + ")"
}

func failed(r *v1alpha1.Rollout) (State, bool) {
	current := r.Current()
	if current.State() != v1alpha1.BakeFailed {
		return State{}, false
	}
	cause := "it failed"
	if current.BakeStatusMessage != nil {
		cause = *current.BakeStatusMessage
	}
	if back := condition(r, v1alpha1.RolledBackCondition); back.Status == metav1.ConditionFalse {
		cause += "; " + back.Message
	}
	return State{StateFailed, cause}, true
}

func stalled(r *v1alpha1.Rollout) (State, bool) {
	c := condition(r, v1alpha1.StalledCondition)
	return State{StateStalled, c.Message}, c.Status == metav1.ConditionTrue && c.Reason != v1alpha1.BakeTimeFailedReason
}

func running(r *v1alpha1.Rollout) (State, bool) {
	current, kind := r.Current(), StateDeploying
	switch current.State() {
	case v1alpha1.BakeInProgress:
		kind = StateBaking
	case v1alpha1.BakeDeploying:
	default:
		return State{}, false
	}
	return State{kind, trouble(r)}, true
}

// trouble returns what keeps the current release from being applied and healthy, or else
// what it waits for.
func trouble(r *v1alpha1.Rollout) string {
	ready := condition(r, v1alpha1.ReadyCondition)
	switch hindered := hindrances(r); {
	case hindered != "":
		return hindered
	case ready.Status == metav1.ConditionFalse:
		return ready.Message
	}
	return promotion.StateMessage(r)
}

// hindrances returns what keeps targets from having applied the release; empty if nothing
// is known to.
func hindrances(r *v1alpha1.Rollout) string {
	var all []string
	for _, t := range r.Status.Targets {
		if t.State != v1alpha1.TargetApplied && t.Message != "" {
			all = append(all, fmt.Sprintf("%s %s: %s", t.Kind, t.Name, t.Message))
		}
	}
	return strings.Join(all, "; ")
}

func notReady(r *v1alpha1.Rollout) (State, bool) {
	ready := condition(r, v1alpha1.ReadyCondition)
	switch hindered := hindrances(r); {
	case r.Current() != nil && hindered != "":
		return State{StateDeploying, hindered}, true
	case ready.Status == metav1.ConditionFalse:
		return State{StateWaiting, ready.Message}, true
	case r.Current() == nil && ready.Status == "":
		return State{StateWaiting, "the controller has not looked at it yet"}, len(r.Status.ReleaseCandidates) == 0
	}
	return State{}, false
}

func candidate(r *v1alpha1.Rollout) (State, bool) {
	if len(r.Status.ReleaseCandidates) == 0 {
		return State{}, false
	}
	switch holds := r.Status.ReleaseCandidates[0].Holds; len(holds) {
	case 0:
		return State{StateGoes, "nothing holds " + r.Status.ReleaseCandidates[0].Tag}, true
	case 1:
		return State{StateHeld, holds[0].Message}, true
	default:
		return State{StateHeld, fmt.Sprintf("%s (and %d more)", holds[0].Message, len(holds)-1)}, true
	}
}

func unseen(r *v1alpha1.Rollout) (State, bool) {
	c := condition(r, v1alpha1.ReleasesUpdatedCondition)
	return State{StateUnseen, c.Message + pinned(r)}, c.Status == metav1.ConditionFalse
}

// pinned returns the end of a sentence about a Rollout that users have pinned.
func pinned(r *v1alpha1.Rollout) string {
	if tag := r.Pinned(); tag != "" {
		return "; " + tag + " is pinned"
	}
	return ""
}

func condition(r *v1alpha1.Rollout, kind string) metav1.Condition {
	for _, c := range r.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}
