// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/simulate"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Remedied is how many candidates get remedies.
const Remedied = 10

type explaining struct {
	*program.Program
	out     *program.Output
	tag, at string
	check   bool
}

// NewExplain returns the verb explain.
func NewExplain(p *program.Program) *cobra.Command {
	e := &explaining{Program: p}
	cmd := &cobra.Command{
		Use: "explain NAME", Short: "Say why a release is not out, and what would let it go",
		Long: `Say what holds each candidate of a Rollout, and which commands would let it go.

The decision is made here and now, by the same function as in the controller, on
objects that are read now. Each command that is suggested was tried on them first.`,
		Example: fmt.Sprintf(`  # Why is nothing newer out?
  %[1]s explain shop
  # What about this release? It may be any tag
  %[1]s explain shop --version 1.5.0
  # In a script: exit code 2 if it is held
  %[1]s explain shop --version 1.5.0 --check`, p.Called),
		Args: program.OneName(0, "the name of a Rollout"), ValidArgsFunction: p.CompleteRollouts,
		RunE: func(cmd *cobra.Command, args []string) error { return e.run(cmd.Context(), args[0]) },
	}
	e.out = program.NewOutput(cmd)
	cmd.Flags().StringVar(&e.tag, "version", "", "explain only this release, which may be any tag")
	cmd.Flags().BoolVar(&e.check, "check", false, "exit with 2 if the release, or without --version every candidate, is held")
	cmd.Flags().StringVar(&e.at, "at", "", "decide as at this time (RFC 3339), or in a while (+2h)")
	p.ReadsFiles(cmd.Flags())
	return cmd
}

func (e *explaining) run(ctx context.Context, name string) error {
	now, err := program.TimeOf(e.at, e.Now(), e.Zone)
	if err != nil {
		return err
	}
	v, err := e.View(ctx, name, now)
	if err != nil {
		return err
	}
	if e.tag != "" {
		return e.one(v)
	}
	explanation := Explanation(v, Remedied)
	if !e.out.IsText() {
		err = e.out.Print(e.Program, explanation)
	} else {
		e.all(v, explanation)
	}
	if err == nil && e.check && isHeld(explanation) {
		return program.Exit{Code: program.No}
	}
	return err
}

// Explanation explains the decision, with remedies for so many candidates.
func Explanation(v program.View, remedies int) explain.Explanation {
	x := explain.Explain(v.Input, v.Decision, remedies, v.Possible)
	x.TypeMeta = program.AnswerKind("Explanation")
	switch partly := v.Partly(); {
	case partly != "":
		if !v.Unread.OnlyHold() { // they are about what could not be read
			x.Problems = slices.DeleteFunc(x.Problems, func(p explain.Problem) bool {
				return p.Reason != explain.SuspendedReason && p.Reason != explain.BehindReason
			})
		}
		x.Problems = slices.Insert(x.Problems, 0, explain.Problem{Reason: readPartly, Message: partly})
	case v.Err != nil:
		x.Problems = append(x.Problems, explain.Problem{Reason: readFailed, Message: incomplete(v.Err)})
	}
	return x
}

// Reasons of what a user could not read, and may not.
const (
	readFailed = "ReadFailed"
	readPartly = "ReadPartly"
)

// incomplete says in one line what could not be read.
func incomplete(err error) string {
	return "this answer may be incomplete: " + strings.ReplaceAll(err.Error(), "\n", "; ")
}

// isHeld reports whether there are candidates, and none of them can go.
func isHeld(e explain.Explanation) bool {
	for _, candidate := range e.Candidates {
		if len(candidate.Holds) == 0 {
			return false
		}
	}
	return len(e.Candidates) > 0
}

// all explains the Rollout with all candidates.
func (e *explaining) all(v program.View, x explain.Explanation) {
	e.Program.Out.Prose("%s", show.Text(e.headline(v, x)))
	e.failure(x)
	e.problems(v, x)
	e.rollback(v, x)
	for _, candidate := range x.Candidates {
		e.Program.Out.Line("")
		e.candidate(v, candidate)
	}
	e.differences(x)
	e.measured(v, x)
	if v.Unread.Any() {
		return // who does not see everything cannot look ahead
	}
	e.Program.Out.Line("")
	simulate.Forecast(e.Program, v)
}

func (e *explaining) headline(v program.View, x explain.Explanation) string {
	p := e.Program.Out
	runs := "has no release yet"
	if x.Current != nil {
		runs = fmt.Sprintf("%s %s%s, %s", runsOrRecorded(v), show.Clean(x.Current.Version.Tag), idOf(x.Current), x.Current.State())
	}
	line := fmt.Sprintf("Rollout %s %s.", p.Bold(x.Namespace+"/"+x.Name), runs)
	switch n := len(x.Candidates); {
	case n == 0 && v.Policy.Problem != nil:
		line += " No newer release is known."
	case n == 0:
		line += " There is no newer release."
	case isHeld(x):
		line += fmt.Sprintf(" %s, none can go now.", verdict.Count(n, "candidate"))
	default:
		line += fmt.Sprintf(" %s.", verdict.Count(n, "candidate"))
	}
	if x.Changes != nil {
		line += fmt.Sprintf(" Time alone changes something at %s.", show.Moment(x.Changes.Time, v.Now, e.Zone))
	}
	if doing := doing(v); doing != "" {
		line += fmt.Sprintf("\n%s %s", p.Sign(show.Do), show.Clean(doing))
	}
	return line
}

// runsOrRecorded returns what the newest entry of the history is about.
func runsOrRecorded(v program.View) string {
	if v.Targets.Outdate(v.Rollout.Status.History) {
		return "recorded"
	}
	return "runs"
}

// doing returns what the engine does now; empty if that is nothing.
func doing(v program.View) string {
	d := v.Decision
	switch {
	case v.Rollout.Spec.Suspend, d.Action == promotion.Nothing:
		return ""
	case d.Action.Promotes():
		return fmt.Sprintf("%s goes out now: %s", d.Release.Tag, d.Message)
	}
	return d.Message
}

func idOf(entry *v1alpha1.DeploymentHistoryEntry) string {
	if entry == nil || entry.ID == nil {
		return ""
	}
	return fmt.Sprintf(" (#%d)", *entry.ID)
}

// failure says why the current release has failed.
func (e *explaining) failure(x explain.Explanation) {
	if x.Current == nil || x.Current.State() != v1alpha1.BakeFailed || x.Current.BakeStatusMessage == nil {
		return
	}
	const longest = 512
	e.Program.Out.Prose("%s %s failed: %s", e.Program.Out.Sign(show.Bad), x.Current.Version.Tag, truncate.Text(*x.Current.BakeStatusMessage, longest))
}

func (e *explaining) problems(v program.View, x explain.Explanation) {
	for _, problem := range x.Problems {
		e.Program.Out.Prose("%s %s: %s", e.Program.Out.Sign(show.Warns), problem.Reason, problem.Message)
		if problem.Reason == v1alpha1.HistoryOutdatedReason && promotion.Decide(request.Adopt().Apply(v.Input)).Action.Promotes() {
			e.Program.Out.Command("    ", e.CommandLine(v.Rollout.Namespace, "adopt", v.Rollout.Name), "")
		}
	}
}

// rollback says whether the Rollout goes back by itself.
func (e *explaining) rollback(v program.View, x explain.Explanation) {
	back := x.Rollback
	if back == nil {
		return
	}
	sign, ends := show.Bad, ""
	switch {
	case back.Done && back.Reason == v1alpha1.AutomaticRollbackReason:
		sign = show.Do
	case back.Until != nil:
		sign, ends = show.Waits, fmt.Sprintf(" (in %s)", show.Span(back.Until.Sub(v.Now)))
	}
	e.Program.Out.Prose("%s %s: %s%s", e.Program.Out.Sign(sign), back.Reason, back.Message, ends)
}

func (e *explaining) candidate(v program.View, c explain.Candidate) {
	p := e.Program.Out
	if len(c.Holds) == 0 {
		p.Line("%s   nothing holds it", p.Bold(c.Version))
		return
	}
	p.Line("%s   held by %d", p.Bold(c.Version), len(c.Holds))
	for _, hold := range c.Holds {
		sign, ends := show.Bad, ""
		if hold.Until != nil {
			sign, ends = show.Waits, fmt.Sprintf(" (ends by itself in %s)", show.Span(hold.Until.Sub(v.Now)))
		}
		p.Prose("  %s %s  %s%s", p.Sign(sign), hold.Reason, hold.Message, ends)
	}
	for _, application := range applicationsOf(v, c) {
		p.Command("    ", e.CommandLine(v.Rollout.Namespace, "pipeline", application), "(what runs in the environments before)")
	}
	for _, remedy := range c.Remedies {
		p.Command("    ", e.command(v, remedy), effect(remedy))
	}
}

// applicationsOf returns the applications whose environments hold a candidate.
func applicationsOf(v program.View, c explain.Candidate) []string {
	if !slices.ContainsFunc(c.Holds, func(h explain.Hold) bool { return verdict.IsOfUpstreams(h.Reason) }) {
		return nil
	}
	var all []string
	for _, environment := range v.Upstreams.Environments {
		all = append(all, environment.Spec.Name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// command returns what a user types for a request.
func (e *explaining) command(v program.View, c explain.Command) string {
	return e.CommandLine(v.Rollout.Namespace, append([]string{c.Verb, cmp.Or(c.Name, v.Rollout.Name)}, c.Args...)...)
}

func effect(c explain.Command) string {
	if c.Promotes {
		return ""
	}
	return "(then still held: " + strings.Join(c.Left, ", ") + ")"
}

// differences says what the status claims otherwise.
func (e *explaining) differences(x explain.Explanation) {
	if len(x.Differences) == 0 {
		return
	}
	p := e.Program.Out
	p.Line("")
	p.Prose("%s the status of the Rollout says something else. The controller may not run, may not have seen the newest objects yet, or has the flag --%s:", p.Sign(show.Warns), unlikely(x.Differences))
	for _, d := range x.Differences {
		status := "no candidate"
		if d.Known {
			status = reasonsOr(d.Status)
		}
		p.Prose("  %s   status: %s; now: %s", d.Version, status, reasonsOr(d.Decision))
	}
}

// unlikely returns the flag of the controller that is not known here, and that explains
// the differences.
func unlikely(all []explain.Difference) string {
	held := func(reasons []string) bool {
		return slices.Contains(reasons, v1alpha1.QuarantinedReason) || slices.Contains(reasons, v1alpha1.QuarantineListFailedReason)
	}
	if slices.ContainsFunc(all, func(d explain.Difference) bool { return held(d.Status) && !held(d.Decision) }) {
		return "quarantine-scope=Cluster, as you can give here, too"
	}
	return "no-cross-namespace-refs"
}

// signsOfHealth are the signs of the results of HealthChecks.
var signsOfHealth = map[v1alpha1.HealthStatus]show.Sign{
	v1alpha1.HealthStatusHealthy: show.Well, v1alpha1.HealthStatusUnhealthy: show.Bad, v1alpha1.HealthStatusPending: show.Waits, "": show.Waits,
}

// measured shows what the HealthChecks of the Rollout have measured.
func (e *explaining) measured(v program.View, x explain.Explanation) {
	p := e.Program.Out
	for _, c := range x.HealthChecks {
		p.Line("")
		sign, known := signsOfHealth[c.Status]
		if !known {
			sign = show.Asks
		}
		title := fmt.Sprintf("HealthCheck %s/%s is %s", c.Namespace, c.Name, cmp.Or(c.Status, v1alpha1.HealthStatusPending))
		p.Prose("%s %s", p.Sign(sign), strings.TrimSuffix(title+": "+c.Message, ": "))
		for _, line := range show.Measured(c, v.Now, e.Zone) {
			p.Line("    %s", line)
		}
	}
}

func reasonsOr(reasons []string) string {
	if len(reasons) == 0 {
		return "not held"
	}
	return strings.Join(reasons, ", ")
}

// one explains one tag.
func (e *explaining) one(v program.View) error {
	answer := e.answer(v)
	if !e.out.IsText() {
		if err := e.out.Print(e.Program, answer); err != nil {
			return err
		}
	} else {
		e.problems(v, answer.Explanation)
		e.standing(v, answer)
	}
	goes := answer.Position == promotion.Deployed || len(answer.Candidates) > 0 && len(answer.Candidates[0].Holds) == 0
	if e.check && !goes {
		return program.Exit{Code: program.No}
	}
	return nil
}

// answer says where the tag is, and what holds it if it is a candidate.
func (e *explaining) answer(v program.View) tagAnswer {
	standing := promotion.StandingOf(v.Input, v.Decision, e.tag)
	x := Explanation(v, 0)
	x.Candidates = []explain.Candidate{}
	if standing.Verdict != nil {
		candidate := explain.CandidateOf(*standing.Verdict)
		candidate.Remedies = explain.Commands(v.Input, *standing.Verdict, v.Possible)
		x.Candidates = append(x.Candidates, candidate)
	}
	return tagAnswer{x, e.tag, standing.Position, standing.Message, standing.Entry}
}

func (e *explaining) standing(v program.View, a tagAnswer) {
	p := e.Program.Out
	if a.Message != "" {
		p.Prose("%s", a.Message)
	}
	for _, candidate := range a.Candidates {
		e.candidate(v, candidate)
	}
	if entry := a.Entry; entry != nil {
		p.Line("  it was promoted here%s on %s: %s", idOf(entry), show.Moment(entry.Timestamp.Time, v.Now, e.Zone), entry.State())
	}
}

// tagAnswer is what can be said of one tag.
type tagAnswer struct {
	explain.Explanation `json:",inline"`
	Version             string                           `json:"version"`
	Position            promotion.Position               `json:"position"`
	Message             string                           `json:"message,omitempty"`
	Entry               *v1alpha1.DeploymentHistoryEntry `json:"entry,omitempty"`
}
