// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/measured"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/content"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Explanation says what happens to a Rollout, and what holds each candidate. All reasons,
// messages and times are those of the decision.
type Explanation struct {
	metav1.TypeMeta `json:",inline"`
	// Namespace and Name of the Rollout.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// At is the time of the decision.
	At metav1.Time `json:"at"`
	// Current is the newest entry of the history; absent if nothing is deployed.
	Current *v1alpha1.DeploymentHistoryEntry `json:"current,omitempty"`
	// State is how the Rollout is doing.
	State State `json:"state"`
	// Remedies are requests that help the Rollout as a whole and were tried, the weakest first.
	Remedies []Command `json:"remedies,omitempty"`
	// Problems are what prevents more than one candidate, or makes the answer incomplete.
	Problems []Problem `json:"problems,omitempty"`
	// Now is what the engine does at this moment.
	Now Step `json:"now"`
	// Rollback says whether the Rollout goes back by itself; absent if there is nothing to
	// say, or if Now is the rollback.
	Rollback *Rollback `json:"rollback,omitempty"`
	// Awaited is the release that a user chose and that waits for approvals; absent if there is
	// none.
	Awaited *Candidate `json:"awaited,omitempty"`
	// Candidates are the releases newer than the current one, newest first.
	Candidates []Candidate `json:"candidates"`
	// Changes is when time alone may change something; absent if it never does.
	Changes *metav1.Time `json:"changes,omitempty"`
	// HealthChecks are those that the Rollout selects and that are measured.
	HealthChecks []measured.Check `json:"healthChecks,omitempty"`
	// Differences are what the status of the Rollout says otherwise.
	Differences []Difference `json:"differences,omitempty"`
}

// Problem is what stands above all candidates.
type Problem struct {
	// Reason is one of the v1alpha1 reasons, or one of this package.
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Reasons of problems that the engine does not know, because they are about whether it is
// asked at all.
const (
	// SuspendedReason: the controller does nothing for the Rollout.
	SuspendedReason = "Suspended"
	// BehindReason: the controller has not seen the newest spec of the Rollout.
	BehindReason = "StatusBehind"
)

// Step is what the engine does.
type Step struct {
	Action  string `json:"action"`
	Version string `json:"version,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Rollback is what the condition RolledBack says.
type Rollback struct {
	// Done is true if the current promotion is a rollback.
	Done    bool   `json:"done"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Until is when time alone changes that; absent if it never does.
	Until *metav1.Time `json:"until,omitempty"`
}

func rollbackOf(d promotion.Decision) *Rollback {
	back := d.Rollback
	if back.Reason == "" || d.Back != nil {
		return nil
	}
	return &Rollback{back.Done, back.Reason, back.Message, timeOrNil(back.Until)}
}

// Candidate is a release with what holds it.
type Candidate struct {
	Version string `json:"version"`
	Digest  string `json:"digest,omitempty"`
	// Holds are empty if the candidate may go.
	Holds []Hold `json:"holds,omitempty"`
	// Remedies are requests that were tried, the weakest first.
	Remedies []Command `json:"remedies,omitempty"`
}

// Hold is one reason against promoting a candidate now.
type Hold struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	// Until is when time alone ends it; absent if it never does.
	Until *metav1.Time `json:"until,omitempty"`
	// Details are what is said of the gates, schedules and HealthChecks that hold.
	Details []string `json:"details,omitempty"`
}

// Command is a request as a user types it, and its effect.
type Command struct {
	// Verb and Args are typed with Name between them.
	Verb string `json:"verb"`
	// Name is that of a ReleaseQuarantine or a freeze; absent for the name of the Rollout.
	Name string   `json:"name,omitempty"`
	Args []string `json:"args,omitempty"`
	// Promotes is true if the candidate is promoted at once.
	Promotes bool `json:"promotes"`
	// Left are the reasons of the holds that remain, if it is not.
	Left []string `json:"left,omitempty"`
}

// Explain explains a decision on an input. Only the first candidates get remedies, as many
// as given: each remedy takes a decision. See [Remedies] for those that are possible.
func Explain(in promotion.Input, d promotion.Decision, remedies int, user User) Explanation {
	e := Explanation{
		Namespace: in.Rollout.Namespace, Name: in.Rollout.Name, At: metav1.NewTime(in.Now), Current: in.Rollout.Current(),
		State: StateNow(in, d), Problems: Problems(in, d), Now: Step{string(d.Action), d.Release.Tag, d.Reason, d.Message},
		Candidates: []Candidate{}, Changes: timeOrNil(d.RecheckAt), Differences: differences(in.Rollout, d.Candidates),
		Rollback: rollbackOf(d), HealthChecks: measured.Of(in.Rollout, in.Health.Checks),
	}
	e.Problems, e.Remedies = append(e.Problems, targetProblems(in.Targets.All, e.Current)...), OfState(in, e.State, user)
	if d.Awaited != nil {
		awaited := CandidateOf(in, *d.Awaited)
		awaited.Remedies = Commands(in, *d.Awaited, user)
		e.Awaited = &awaited
	}
	for i, verdict := range d.Candidates {
		candidate := CandidateOf(in, verdict)
		if i < remedies {
			candidate.Remedies = Commands(in, verdict, user)
		}
		e.Candidates = append(e.Candidates, candidate)
	}
	return e
}

// CandidateOf returns a candidate as it is shown, without remedies.
func CandidateOf(in promotion.Input, verdict promotion.Verdict) Candidate {
	candidate := Candidate{Version: verdict.Release.Tag, Holds: holds(in, verdict)}
	if in.Policy.IsCurrent(in.Rollout.Status.History, verdict.Release.Tag) { // other content of the tag
		candidate.Version = in.Policy.FullName(verdict.Release)
	}
	if verdict.Release.Digest != nil {
		candidate.Digest = *verdict.Release.Digest
	}
	return candidate
}

func holds(in promotion.Input, of promotion.Verdict) []Hold {
	var all []Hold
	for _, hold := range of.Holds {
		all = append(all, Hold{hold.Reason, hold.Message, timeOrNil(hold.Until), details(in, hold.Reason, of.Release)})
	}
	return all
}

// details returns what the authors of gates and schedules, and the HealthChecks, say of a
// hold.
func details(in promotion.Input, reason string, release v1alpha1.VersionInfo) []string {
	var all []string
	say := func(what, text string) {
		if text != "" {
			all = append(all, what+": "+text)
		}
	}
	blocking := promotion.Blocking(in, reason, release)
	for i := range in.Gates.Gates {
		if gate := &in.Gates.Gates[i]; slices.Contains(blocking, gate.Name) {
			say("RolloutGate "+gate.Name, promotion.Described(gate))
		}
	}
	for _, window := range in.Gates.Schedules {
		if slices.Contains(blocking, window.Schedule) {
			say(window.Schedule, window.Description)
		}
	}
	if reason == v1alpha1.UnhealthyHealthChecksReason {
		for _, check := range evidence.Unhealthy(in.Health.Checks) {
			say("HealthCheck "+check.Namespace+"/"+check.Name, releases.OrEmpty(check.Status.Message))
		}
	}
	return all
}

// Commands returns the remedies of a candidate as they are shown. There are none if nothing
// holds it, or while the Rollout is suspended: then only to resume it helps.
func Commands(in promotion.Input, verdict promotion.Verdict, user User) []Command {
	if verdict.Eligible() || in.Rollout.Spec.Suspend {
		return nil
	}
	var all []Command
	for _, remedy := range Remedies(in, verdict, user) {
		all = append(all, Command{remedy.Request.Verb, remedy.Request.Name(), remedy.Request.Args, remedy.Promotes, reasons(remedy.Left)})
	}
	return all
}

// Problems returns what stands above all candidates, each once, the most important first.
// What is said of single targets is not among it.
func Problems(in promotion.Input, d promotion.Decision) []Problem {
	var all []Problem
	add := func(p *verdict.Problem) {
		if p != nil && !slices.Contains(all, Problem(*p)) {
			all = append(all, Problem(*p))
		}
	}
	switch observed := in.Rollout.Status.ObservedGeneration; {
	case in.Rollout.Spec.Suspend: // then no generation is observed
		add(&verdict.Problem{Reason: SuspendedReason, Message: "the Rollout is suspended: nothing happens until it is resumed" + whoSuspended(in.Rollout)})
	case observed != in.Rollout.Generation:
		add(&verdict.Problem{Reason: BehindReason, Message: "the controller has not seen the newest spec of the Rollout yet"})
	}
	if why := in.Upstreams.Problem; why != "" && len(d.Candidates) == 0 { // else it holds each of them
		add(&verdict.Problem{Reason: environmentsv1.UpstreamUnknownReason, Message: why})
	}
	if hold := in.Upstreams.Withdrawn(in.Rollout.Current()); hold != nil {
		add(&verdict.Problem{Reason: environmentsv1.UpstreamWithdrewCondition, Message: hold.Message})
	}
	for _, p := range []*verdict.Problem{d.Problem, d.Declined, in.Content().NotPromotedProblem(), in.Policy.Problem, releases.FloatingTag(in.Policy), in.Gates.Problem,
		in.Quarantines.Problem, in.Health.Problem, in.Targets.Problem} {
		add(p)
	}
	return all
}

// reasonsOfTargets are the reasons for which a target is in a state, if it has none of its own.
var reasonsOfTargets = map[v1alpha1.TargetState]string{
	v1alpha1.TargetPending: v1alpha1.TargetsPendingReason, v1alpha1.TargetFailed: v1alpha1.TargetFailedReason,
	v1alpha1.TargetConflict: v1alpha1.TargetConflictReason, v1alpha1.TargetApplied: v1alpha1.TargetsAppliedReason,
}

// targetProblems returns what keeps targets from having applied the release, and what else
// is said of them, unless the release has failed by that. A history that is outdated is a problem of
// the Rollout, which names the target.
func targetProblems(targets []content.Target, current *v1alpha1.DeploymentHistoryEntry) []Problem {
	var all []Problem
	named := current.State() == v1alpha1.BakeFailed && current.Cause == v1alpha1.CauseDeployTimeout
	for _, t := range targets {
		if named && t.State == v1alpha1.TargetFailed {
			continue
		}
		if t.Message != "" && (t.Reason != "" || t.State != v1alpha1.TargetApplied) && t.Reason != v1alpha1.TargetHistoryOutdated {
			all = append(all, Problem{cmp.Or(string(t.Reason), reasonsOfTargets[t.State]), fmt.Sprintf("%s: %s", t, truncate.Message(t.Message))})
		}
	}
	return all
}

func timeOrNil(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}
