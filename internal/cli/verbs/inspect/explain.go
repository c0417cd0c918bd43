// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/simulate"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/releases"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// Remedied is how many candidates get remedies.
const Remedied = 10

type explaining struct {
	*program.Program
	out     *program.Output
	tag, at string
	said    string
	check   bool
}

// NewExplain returns the verb explain.
func NewExplain(p *program.Program) *cobra.Command {
	e := &explaining{Program: p}
	cmd := &cobra.Command{
		Use: "explain NAME [VERSION]", Short: "Say why a release is not out, and what would let it go",
		Long: `Say what holds each candidate of a Rollout, and which commands would let it go.

The decision is made here and now, by the same function as in the controller, on
objects that are read now. Each command that is suggested was tried on them first.`,
		Example: fmt.Sprintf(`  # Why is nothing newer out?
  %[1]s explain shop
  # What about this release? It may be any tag
  %[1]s explain shop 1.5.0
  # In a script: exit code 2 if it is held
  %[1]s explain shop 1.5.0 --check
  # What does this message mean? No cluster is asked
  %[1]s explain --message 'not passing: RolloutGate qa'`, p.Called),
		ValidArgsFunction: p.CompleteRollouts,
		RunE: func(cmd *cobra.Command, args []string) error {
			if e.said != "" {
				return e.message()
			}
			return e.run(cmd.Context(), args[0])
		},
	}
	e.out = program.NewOutput(cmd)
	program.TakesVersion(cmd, &e.tag, "explain only this release, which may be any tag")
	cmd.Flags().StringVar(&e.said, "message", "", "say instead what a message, an event or a reason of the controller means")
	aboutRollout := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if e.said != "" {
			return program.Named(0, 0, "no name with --message")(cmd, args)
		}
		return aboutRollout(cmd, args)
	}
	cmd.Flags().BoolVar(&e.check, "check", false, "exit with 2 if nothing can go out: the release, or without --version every candidate, is held, the Rollout is suspended, or it has failed")
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
	x := explain.Explain(v.Input, v.Decision, remedies, v.User())
	x.TypeMeta = program.AnswerKind("Explanation")
	if x.Awaited != nil {
		sayWhoMay(v, x.Awaited.Holds)
	}
	for i := range x.Candidates {
		sayWhoMay(v, x.Candidates[i].Holds)
	}
	switch partly := v.Partly(); {
	case partly != "":
		x.State = explain.StateOf(v.Rollout)
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

// sayWhoMay adds to holds which rights let somebody end them, if the user lacks some.
func sayWhoMay(v program.View, holds []explain.Hold) {
	lacks := v.Person.Lacks()
	for i := range holds {
		if holds[i].Reason == v1alpha1.ApprovalRequiredReason && len(lacks) > 0 {
			holds[i].Details = append(holds[i].Details, fmt.Sprintf("you may not approve that: it takes the verb %s on rollouts/%s",
				show.Words(lacks, "or"), v.Rollout.Name))
		}
	}
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

// isHeld reports whether nothing can go out: each candidate is held, or there is none because
// something is wrong.
func isHeld(e explain.Explanation) bool {
	wrong := []explain.Kind{explain.StateFailed, explain.StateStalled, explain.StateWaiting, explain.StateUnseen}
	if len(e.Candidates) == 0 {
		return e.State.Kind == explain.StateSuspended || slices.Contains(wrong, e.State.Kind)
	}
	return e.State.Kind == explain.StateSuspended || !slices.ContainsFunc(e.Candidates, isFree)
}

func isFree(c explain.Candidate) bool { return len(c.Holds) == 0 }

// all explains the Rollout with all candidates.
func (e *explaining) all(v program.View, x explain.Explanation) {
	e.Program.Out.Prose("%s", show.Text(e.headline(v, x)))
	if doing := doing(v); doing != "" {
		e.Program.Out.Prose("%s %s", e.Program.Out.Sign(show.Do), doing)
	}
	e.state(v, x)
	e.problems(v, x)
	e.rollback(v, x)
	if x.Awaited != nil {
		e.Program.Out.Line("")
		e.Program.Out.Prose("%s was chosen, and waits. Until then, no other release goes out.", x.Awaited.Version)
		e.candidate(v, *x.Awaited)
	}
	for _, alike := range grouped(withoutAwaited(x)) {
		e.Program.Out.Line("")
		e.candidate(v, alike[0])
		e.others(alike[1:])
	}
	e.differences(x)
	e.measured(v, x)
	if v.Unread.Any() {
		return // who does not see everything cannot look ahead
	}
	e.Program.Out.Line("")
	forecast, err := simulate.Forecast(e.Program, v)
	if err != nil {
		e.Err.Sentence(show.Warns, "%s", err)
		return
	}
	e.Program.Out.Prose("%s", forecast)
}

// withoutAwaited returns the candidates that are not shown already.
func withoutAwaited(x explain.Explanation) []explain.Candidate {
	return slices.DeleteFunc(slices.Clone(x.Candidates), func(c explain.Candidate) bool { return x.Awaited != nil && c.Version == x.Awaited.Version })
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
		line += fmt.Sprintf(changes(v, x.Changes.Time), show.Moment(x.Changes.Time, v.Now, e.Zone))
	}
	return line
}

// changes says what time alone changes, if nothing else does before.
func changes(v program.View, at time.Time) string {
	in := v.Input
	in.Now, in.Gates.Schedules = at, v.Windows(at)
	action := promotion.Decide(in).Action
	if action == promotion.FailBake {
		return " It fails at %s unless it is applied and healthy by then."
	}
	if action == promotion.FinishBake {
		return " It succeeds at %s if it stays healthy."
	}
	return " Time alone changes something at %s."
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

// state says why the current release has failed or is not out yet, and what helps.
func (e *explaining) state(v program.View, x explain.Explanation) {
	p := e.Program.Out
	switch {
	case x.Current == nil:
	case x.Current.State() == v1alpha1.BakeFailed && x.Current.BakeStatusMessage != nil:
		p.Prose("%s %s failed: %s", p.Sign(show.Bad), x.Current.Version.Tag, *x.Current.BakeStatusMessage)
	case x.State.Kind == explain.StateDeploying:
		p.Command("    ", e.CommandLine(v.Rollout.Namespace, "status", v.Rollout.Name), "all that the release reaches")
	}
	if x.State.Kind == explain.StateFailed {
		e.remedies(v, x.Remedies)
	}
}

func (e *explaining) remedies(v program.View, all []explain.Command) {
	for _, remedy := range all {
		e.Program.Out.Command("    ", remedyOf(e.Program, client.ObjectKeyFromObject(v.Rollout), remedy), effect(remedy))
	}
}

func (e *explaining) problems(v program.View, x explain.Explanation) {
	for _, problem := range x.Problems {
		e.Program.Out.Prose("%s %s: %s", e.Program.Out.Sign(show.Warns), problem.Reason, problem.Message)
		if problem.Reason == v1alpha1.HistoryOutdatedReason && promotion.Decide(request.Adopt().Apply(v.Input)).Action.Promotes() {
			e.Program.Out.Command("    ", e.CommandLine(v.Rollout.Namespace, "adopt", v.Rollout.Name), "")
		}
	}
	if x.State.Kind == explain.StateSuspended {
		e.remedies(v, x.Remedies)
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
		sign, ends = show.Waits, fmt.Sprintf(" (%s)", e.when(v, back.Until.Time))
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
			sign, ends = show.Waits, fmt.Sprintf(" (ends by itself %s)", e.when(v, hold.Until.Time))
		}
		p.Prose("  %s %s  %s%s", p.Sign(sign), hold.Reason, hold.Message, ends)
		for _, detail := range hold.Details {
			p.Prose("      %s", detail)
		}
	}
	for _, application := range applicationsOf(v, c) {
		p.Command("    ", e.CommandLine(v.Rollout.Namespace, "pipeline", application), "what runs in the environments before")
	}
	e.remedies(v, c.Remedies)
}

// when returns a moment in the zone of the user. Messages have it in UTC.
func (e *explaining) when(v program.View, t time.Time) string {
	return fmt.Sprintf("on %s, in %s", show.Moment(t, v.Now, e.Zone), show.Span(t.Sub(v.Now)))
}

// grouped puts candidates together that are held in the same way.
func grouped(all []explain.Candidate) [][]explain.Candidate {
	var groups [][]explain.Candidate
	for _, candidate := range all {
		i := slices.IndexFunc(groups, func(g []explain.Candidate) bool { return holdsOf(g[0]) == holdsOf(candidate) })
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], candidate)
	}
	return groups
}

// holdsOf returns the holds of a candidate as a text without its version.
func holdsOf(c explain.Candidate) string {
	var text strings.Builder
	for _, hold := range c.Holds {
		fmt.Fprintf(&text, "%s %s\n", hold.Reason, strings.ReplaceAll(hold.Message, c.Version, "TAG"))
	}
	return text.String()
}

// others names candidates that are held like the one above.
func (e *explaining) others(alike []explain.Candidate) {
	var tags []string
	for _, candidate := range alike {
		tags = append(tags, candidate.Version)
	}
	switch {
	case len(tags) == 0:
	case isFree(alike[0]):
		e.Program.Out.Prose("%s   the same", truncate.List(tags))
	default:
		e.Program.Out.Prose("%s   the same holds; see --version TAG", truncate.List(tags))
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

// remedyOf returns what a user types for a remedy of a Rollout.
func remedyOf(p *program.Program, rollout types.NamespacedName, c explain.Command) string {
	return p.CommandLine(rollout.Namespace, append([]string{c.Verb, cmp.Or(c.Name, rollout.Name)}, c.Args...)...)
}

func effect(c explain.Command) string {
	if c.Promotes || len(c.Left) == 0 {
		return ""
	}
	return "then still held: " + strings.Join(c.Left, ", ")
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
	failed := answer.State.Kind == explain.StateFailed
	goes := answer.Position == promotion.Deployed && !failed || len(answer.Candidates) > 0 && !v.Rollout.Spec.Suspend && isFree(answer.Candidates[0])
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
	if awaited := v.Decision.Awaited; awaited != nil && releases.Name(e.tag).Is(awaited.Release) {
		standing.Verdict, standing.Message = awaited, e.tag+" was chosen, and waits"
	}
	if standing.Verdict != nil {
		candidate := explain.CandidateOf(v.Input, *standing.Verdict)
		candidate.Remedies = explain.Commands(v.Input, *standing.Verdict, v.User())
		sayWhoMay(v, candidate.Holds)
		x.Candidates = append(x.Candidates, candidate)
	}
	return tagAnswer{x, e.tag, standing.Position, standing.Message, standing.Entry}
}

func (e *explaining) standing(v program.View, a tagAnswer) {
	p := e.Program.Out
	if a.Message != "" {
		p.Prose("%s", a.Message)
	}
	if a.Position == promotion.Deployed {
		e.state(v, a.Explanation)
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
