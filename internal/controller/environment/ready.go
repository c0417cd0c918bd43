// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// setReady computes Ready, Reconciling and Stalled together, because kstatus reads them
// together. One that stays keeps the time of its transition: otherwise each look at a registry
// would be a write.
func (o observed) setReady(conditions *[]metav1.Condition) {
	stays := ""
	set := func(kind string, status metav1.ConditionStatus, reason, message string) {
		apimeta.SetStatusCondition(conditions, metav1.Condition{
			Type: kind, Status: status, Reason: reason, Message: truncate.Message(message),
			ObservedGeneration: o.Generation, LastTransitionTime: metav1.NewTime(o.now),
		})
	}
	switch problem := o.problem(); {
	case problem == nil:
		set(v1alpha1.ReadyCondition, metav1.ConditionTrue, environmentsv1.SucceededReason, o.summary())
	case slices.Contains(passing, problem.Reason):
		stays = v1alpha1.ReconcilingCondition
		set(stays, metav1.ConditionTrue, v1alpha1.ProgressingReason, problem.Message)
		set(v1alpha1.ReadyCondition, metav1.ConditionFalse, problem.Reason, problem.Message)
	default:
		stays = v1alpha1.StalledCondition
		set(stays, metav1.ConditionTrue, problem.Reason, problem.Message)
		set(v1alpha1.ReadyCondition, metav1.ConditionFalse, problem.Reason, problem.Message)
	}
	for _, kind := range []string{v1alpha1.ReconcilingCondition, v1alpha1.StalledCondition} {
		if kind != stays {
			apimeta.RemoveStatusCondition(conditions, kind)
		}
	}
}

// problem returns why the Environment cannot be used; nil if it can. What a user must
// correct gives the reason, and otherwise the first problem does: that of an upstream holds
// releases, and that of the own report does not.
func (o observed) problem() *verdict.Problem {
	if !o.exists {
		return &verdict.Problem{Reason: environmentsv1.RolloutNotFoundReason, Message: fmt.Sprintf(
			"Rollout %s does not exist: create it, or correct spec.rolloutRef", o.Spec.RolloutRef.Name)}
	}
	if o.read.Problem != nil {
		return o.read.Problem
	}
	var messages []string
	whole := verdict.Problem{}
	for _, problem := range append(o.problemsOfUpstreams(), o.published.Problem) {
		if problem == nil {
			continue
		}
		messages = append(messages, problem.Message)
		if whole.Reason == "" || slices.Contains(passing, whole.Reason) && !slices.Contains(passing, problem.Reason) {
			whole.Reason = problem.Reason
		}
	}
	if whole.Reason == "" {
		return nil
	}
	whole.Message = truncate.Join(messages, "; ")
	return &whole
}

// passing are the reasons that may pass without a correction.
var passing = []string{environmentsv1.UpstreamUnreadableReason, environmentsv1.PublishFailedReason}

func (o observed) problemsOfUpstreams() []*verdict.Problem {
	var problems []*verdict.Problem
	for _, u := range o.read.Upstreams {
		problems = append(problems, u.Problem)
	}
	return problems
}

// summary says which releases come to the environment.
func (o observed) summary() string {
	after, parallel := o.named(environmentsv1.After), o.named(environmentsv1.Parallel)
	verb, last := "have", " and "
	if o.Spec.Availability == environmentsv1.OneOfUpstreams {
		last = " or "
	}
	if len(after) == 1 || last == " or " {
		verb = "has"
	}
	switch {
	case len(after) > 0:
		return fmt.Sprintf("takes releases that %s %s proven", listed(after, last), verb)
	case len(parallel) > 0:
		return fmt.Sprintf("takes releases that did not fail in %s", listed(parallel, " or "))
	}
	return "comes after no other environment"
}

func (o observed) named(kind environmentsv1.RelationshipType) []string {
	var names []string
	for _, u := range o.GetUpstreams() {
		if u.Type == kind {
			names = append(names, u.Environment)
		}
	}
	return names
}

// listed returns names as part of a sentence, for example "a, b and c".
func listed(names []string, last string) string {
	if len(names) == 1 {
		return names[0]
	}
	end := len(names) - 1
	return strings.Join(slices.Clone(names[:end]), ", ") + last + names[end]
}

// LogValues returns what was found as keys and values for a log line.
func (o observed) LogValues() []any {
	var conditions []metav1.Condition
	o.setReady(&conditions)
	ready := apimeta.FindStatusCondition(conditions, v1alpha1.ReadyCondition)
	return []any{"action", "Record", "reason", ready.Reason, "message", ready.Message, "releases", len(o.releases)}
}
