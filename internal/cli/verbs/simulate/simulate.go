// SPDX-License-Identifier: Apache-2.0

// Package simulate has the verbs that say what would be: simulate in time, diff with other
// manifests.
package simulate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/simulation"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// forecastFor is how far explain looks ahead.
const forecastFor = 7 * program.HoursPerDay * time.Hour

type simulating struct {
	*program.Program
	out       *program.Output
	next      string
	at, takes string
	releases  []string
	approved  []string
	gates     []string
	health    []string
	pin       string
	// everywhere is about all namespaces.
	everywhere bool
}

// Simulation is the answer of the verb simulate.
type Simulation struct {
	metav1.TypeMeta `json:",inline"`
	Namespace       string `json:"namespace"`
	Name            string `json:"name"`
	// Assumes is what was assumed of everything that the engine does not decide.
	Assumes []string `json:"assumes"`
	// Problems are what stands above all candidates.
	Problems []explain.Problem `json:"problems,omitempty"`
	// Steps are what happens, in order.
	Steps []SimulatedStep `json:"steps"`
	// Held is the newest candidate that is still held at the end.
	Held *explain.Candidate `json:"held,omitempty"`
	// End is why the simulation ended, and Until when.
	End   simulation.End `json:"end"`
	Until metav1.Time    `json:"until"`
}

// SimulatedStep is a moment at which the engine does something.
type SimulatedStep struct {
	At      metav1.Time `json:"at"`
	ID      *int64      `json:"id,omitempty"`
	Version string      `json:"version"`
	State   string      `json:"state"`
	Action  string      `json:"action"`
	// Promotes is true if a release goes out.
	Promotes bool   `json:"promotes,omitempty"`
	Message  string `json:"message"`
}

// NewSimulate returns the verb simulate.
func NewSimulate(p *program.Program) *cobra.Command {
	s := &simulating{Program: p}
	cmd := &cobra.Command{
		Use: "simulate [NAME]", Short: "Say what happens when, under assumptions",
		Long: `Say what the controller will do with a Rollout, or with all of a namespace, and when.

The engine of the controller decides at each moment at which something may change.
What others do is assumed, and the assumptions are printed: Flux applies a release as
fast as it did here before, HealthChecks and gates stay as they are. Change them with
the flags below.`,
		Example: fmt.Sprintf(`  # If nothing else changes
  %[1]s simulate shop
  # If QA approves in two hours
  %[1]s simulate shop --gate qa=open@+2h
  # If everybody who is asked approves it tomorrow
  %[1]s simulate shop --approved 1.5.0@+24h
  # If a release appears tomorrow, and its check fails an hour later
  %[1]s simulate shop --release 1.6.0@+24h --health smoke=Unhealthy@+25h
  # The next seven days of all Rollouts
  %[1]s simulate -A --next 7d
  # With a schedule that is not applied yet
  %[1]s simulate shop -f nights.yaml`, p.Called),
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: p.CompleteRollouts,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return s.fleet(cmd.Context())
			case s.everywhere:
				return errors.New("a name and -A do not go together")
			}
			return s.run(cmd.Context(), args[0])
		},
	}
	s.out = program.NewOutput(cmd)
	flags := cmd.Flags()
	flags.BoolVarP(&s.everywhere, "all-namespaces", "A", false, "simulate the Rollouts of all namespaces")
	flags.StringVar(&s.next, "next", "7d", "how far to look ahead")
	flags.StringVar(&s.at, "at", "", "begin at this time (RFC 3339), or in a while (+2h)")
	flags.StringVar(&s.takes, "apply-takes", "", "how long Flux takes to apply a release; the default is the median here")
	flags.StringArrayVar(&s.releases, "release", nil, "a release that appears: TAG or TAG@TIME")
	flags.StringArrayVar(&s.gates, "gate", nil, "a gate that changes: NAME=open, NAME=closed or NAME=TAG,TAG; with @TIME for later")
	flags.StringArrayVar(&s.health, "health", nil, "a HealthCheck that changes: NAME=Healthy or NAME=Unhealthy; with @TIME for later")
	flags.StringArrayVar(&s.approved, "approved", nil, "a release that all approve who are asked: TAG or TAG@TIME")
	flags.StringVar(&s.pin, "pin", "", "a version that is pinned now")
	p.ReadsFiles(flags)
	return cmd
}

func (s *simulating) run(ctx context.Context, name string) error {
	now, err := program.TimeOf(s.at, s.Now(), s.Zone)
	if err != nil {
		return err
	}
	v, err := s.View(ctx, name, now)
	if err != nil {
		return err
	}
	answer, err := s.simulate(&v)
	if err != nil {
		return err
	}
	if !s.out.IsText() {
		return s.out.Print(s.Program, answer)
	}
	s.text(v, answer)
	return nil
}

func simulated(v program.View, result simulation.Result, said []string, until time.Time) Simulation {
	answer := Simulation{
		TypeMeta: program.AnswerKind("Simulation"), Namespace: v.Rollout.Namespace, Name: v.Rollout.Name,
		Assumes: said, Problems: explain.Problems(v.Input, v.Decision), Steps: []SimulatedStep{}, End: result.End, Until: metav1.NewTime(until),
	}
	for _, step := range result.Steps {
		answer.Steps = append(answer.Steps, stepOf(step))
	}
	if candidates := result.Last.Candidates; len(candidates) > 0 && !candidates[0].Eligible() {
		answer.Held = new(explain.CandidateOf(v.Input, candidates[0]))
	}
	return answer
}

func stepOf(step simulation.Step) SimulatedStep {
	one := SimulatedStep{At: metav1.NewTime(step.At), Action: string(step.Decision.Action), Promotes: step.Decision.Action.Promotes(), Message: step.Decision.Message}
	if current := step.Current; current != nil {
		one.ID, one.Version, one.State = current.ID, current.Version.Tag, string(current.State())
	}
	return one
}

func (s *simulating) text(v program.View, answer Simulation) {
	p := s.Program.Out
	p.Prose("Assuming: %s.", strings.Join(answer.Assumes, ", "))
	for _, problem := range answer.Problems {
		p.Prose("%s %s: %s", p.Sign(show.Warns), problem.Reason, problem.Message)
	}
	if len(v.Decision.Candidates) > 0 && !v.Decision.Candidates[0].Eligible() {
		s.holds(v.Now, explain.CandidateOf(v.Input, v.Decision.Candidates[0]))
	}
	for _, step := range answer.Steps {
		id := ""
		if step.ID != nil {
			id = fmt.Sprintf(" (#%d)", *step.ID)
		}
		p.Prose("%s   %s%s %s: %s", show.Exact(step.At.Time, s.Zone), step.Version, id, p.Tinted(signOf(step.State), step.State), step.Message)
	}
	s.end(answer)
}

func signOf(state string) show.Sign {
	switch state {
	case string(v1alpha1.BakeSucceeded):
		return show.Well
	case string(v1alpha1.BakeFailed):
		return show.Bad
	}
	return show.Waits
}

func (s *simulating) holds(at time.Time, c explain.Candidate) {
	for _, hold := range c.Holds {
		s.Program.Out.Prose("%s   %s held: %s: %s", show.Exact(at, s.Zone), c.Version, hold.Reason, hold.Message)
	}
}

// end says why nothing more is shown.
func (s *simulating) end(answer Simulation) {
	p := s.Program.Out
	switch answer.End {
	case simulation.AtRest:
		p.Line("then nothing more, however long one waits")
	case simulation.OutOfTime:
		p.Line("until %s nothing more", show.Exact(answer.Until.Time, s.Zone))
	case simulation.OutOfSteps:
		p.Sentence(show.Warns, "too much happens to show all of it; use a shorter --next")
	}
	if answer.Held != nil {
		reasons := make([]string, 0, len(answer.Held.Holds))
		for _, hold := range answer.Held.Holds {
			reasons = append(reasons, hold.Message)
		}
		p.Prose("%s is still held: %s", answer.Held.Version, strings.Join(reasons, "; "))
	}
}

// assumptions returns what is assumed, and says it.
func (s *simulating) assumptions(v *program.View) (simulation.Assumptions, []string, error) {
	ahead, err := program.SpanOf(s.next)
	if err != nil {
		return simulation.Assumptions{}, nil, fmt.Errorf("--next: %w", err)
	}
	takes, because := simulation.Pace(v.Rollout.Status.History)
	if s.takes != "" {
		if takes, err = program.SpanOf(s.takes); err != nil {
			return simulation.Assumptions{}, nil, fmt.Errorf("--apply-takes: %w", err)
		}
		because = "as given"
	}
	said := []string{fmt.Sprintf("Flux applies a release within %s (%s)", show.Span(takes), because)}
	events, more, err := s.events(v)
	if len(v.Upstreams.Environments) > 0 {
		said = append(said, "nothing is promoted in other environments")
	}
	if v.Unread.Any() {
		said = append(said, fmt.Sprintf("nothing that you may not read (%s) holds a release", v.Unread))
	}
	said = append(append(said, more...), "nothing else changes")
	return simulation.Assumptions{Applies: takes, Schedules: v.Windows, Events: events, Until: v.Now.Add(ahead)}, said, err
}

// Forecast says what happens if nobody does anything.
func Forecast(p *program.Program, v program.View) (string, error) {
	if v.Rollout.Spec.Suspend {
		return "If nobody does anything: nothing, because the Rollout is suspended.", nil
	}
	takes, _ := simulation.Pace(v.Rollout.Status.History)
	result, err := simulation.Run(v.Input, simulation.Assumptions{Applies: takes, Schedules: v.Windows, Until: v.Now.Add(forecastFor)})
	if err != nil {
		return "", fmt.Errorf("what happens next cannot be simulated: %w", err)
	}
	for _, step := range result.Steps {
		if step.Decision.Action.Promotes() {
			return fmt.Sprintf("If nobody does anything: %s goes out on %s.", step.Decision.Release.Tag, show.Moment(step.At, v.Now, p.Zone)), nil
		}
	}
	if candidates := v.Decision.Candidates; len(candidates) > 0 && candidates[0].HeldBy(environmentsv1.UpstreamPendingReason, environmentsv1.UpstreamSoakingReason) {
		return fmt.Sprintf("If nobody does anything: %s does not go out before the environments before this one have proven it.", candidates[0].Release.Tag), nil
	}
	return fmt.Sprintf("If nobody does anything: nothing goes out in the next %s.", verdict.Count(int(forecastFor.Hours())/program.HoursPerDay, "day")), nil
}
