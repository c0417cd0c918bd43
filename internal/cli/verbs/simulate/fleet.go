// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/explain"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/simulation"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
)

// SimulationList is the answer of the verb simulate for several Rollouts.
type SimulationList struct {
	metav1.TypeMeta `json:",inline"`
	Items           []Simulation `json:"items"`
}

// fleet simulates all Rollouts of the namespace, or of all namespaces.
func (s *simulating) fleet(ctx context.Context) error {
	if len(s.releases)+len(s.gates)+len(s.health)+len(s.approved) > 0 || s.pin != "" {
		return errors.New("--release, --gate, --health, --approved and --pin are about one Rollout: name it")
	}
	now, err := program.TimeOf(s.at, s.Now(), s.Zone)
	if err != nil {
		return err
	}
	namespace, err := s.Namespace()
	if err != nil {
		return err
	}
	if s.everywhere {
		namespace = ""
	}
	facts, _, err := s.Facts(ctx, namespace)
	if err != nil {
		return err
	}
	answer, err := s.simulateAll(ctx, facts, now)
	if err != nil {
		return err
	}
	if !s.out.IsText() {
		return s.out.Print(s.Program, answer)
	}
	s.fleetTable(answer)
	return nil
}

func (s *simulating) simulateAll(ctx context.Context, facts *snapshot.Snapshot, now time.Time) (SimulationList, error) {
	answer := SimulationList{TypeMeta: program.AnswerKind("SimulationList"), Items: []Simulation{}}
	all := &v1alpha1.RolloutList{}
	if err := facts.List(ctx, all); err != nil {
		return answer, fmt.Errorf("list Rollouts: %w", err)
	}
	for i := range all.Items {
		v, err := s.ViewIn(ctx, facts, client.ObjectKeyFromObject(&all.Items[i]), now)
		if err != nil {
			return answer, err
		}
		one, err := s.simulate(&v)
		var why unseen
		switch {
		case errors.As(err, &why):
			s.Err.Sentence(show.Warns, "Rollout %s/%s: %s", v.Rollout.Namespace, v.Rollout.Name, why)
			continue
		case err != nil:
			return answer, fmt.Errorf("Rollout %s/%s: %w", v.Rollout.Namespace, v.Rollout.Name, err) //nolint:staticcheck // a kind begins it
		}
		answer.Items = append(answer.Items, one)
	}
	return answer, nil
}

// fleetTable shows the next promotions, in the order in which they come, and then what is
// held to the end.
func (s *simulating) fleetTable(answer SimulationList) {
	var goes, held [][]string
	for _, next := range promotionsOf(answer) {
		goes = append(goes, []string{show.Moment(next.At.Time, s.Now(), s.Zone), next.rollout, next.Version, next.Message})
	}
	for _, one := range answer.Items {
		if one.Held != nil {
			held = append(held, []string{"not by " + show.Moment(one.Until.Time, s.Now(), s.Zone), one.Namespace + "/" + one.Name, one.Held.Version, firstHold(*one.Held)})
		}
	}
	rows := slices.Concat(goes, held)
	if len(rows) == 0 {
		s.Err.Line("nothing goes out, and nothing waits")
		return
	}
	show.Table{Header: []string{"WHEN", "ROLLOUT", "VERSION", "WHY"}, Rows: rows}.Write(s.Program.Out)
}

// nextPromotion is a step of a Rollout.
type nextPromotion struct {
	SimulatedStep

	rollout string
}

// promotionsOf returns the promotions of all Rollouts by time.
func promotionsOf(answer SimulationList) []nextPromotion {
	var all []nextPromotion
	for _, one := range answer.Items {
		for _, step := range one.Steps {
			if step.Promotes {
				all = append(all, nextPromotion{step, one.Namespace + "/" + one.Name})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b nextPromotion) int { return a.At.Compare(b.At.Time) })
	return all
}

func firstHold(c explain.Candidate) string {
	if len(c.Holds) == 0 {
		return "-"
	}
	if more := len(c.Holds) - 1; more > 0 {
		return fmt.Sprintf("%s (and %d more)", c.Holds[0].Message, more)
	}
	return c.Holds[0].Message
}

// unseen is why a Rollout cannot be simulated for this user.
type unseen string

func (u unseen) Error() string { return string(u) }

// seesEnough refuses to simulate a Rollout of which the user does not see what matters.
func seesEnough(v *program.View) error {
	switch {
	case !v.Unread.Any():
	case !v.Unread.OnlyHold():
		return unseen(fmt.Sprintf("it cannot be simulated: you may not read %s", v.Unread))
	case explain.Disagrees(v.Rollout, v.Visible):
		return unseen(fmt.Sprintf("it cannot be simulated: you may not read %s, and the controller holds a release by one of them", v.Unread))
	}
	v.Decision = v.Visible
	return nil
}

// simulate runs the simulation of one Rollout. One that is suspended does nothing.
func (s *simulating) simulate(v *program.View) (Simulation, error) {
	if err := seesEnough(v); err != nil {
		return Simulation{}, err
	}
	assumptions, said, err := s.assumptions(v)
	if err != nil {
		return Simulation{}, err
	}
	if v.Rollout.Spec.Suspend {
		return Simulation{
			TypeMeta: program.AnswerKind("Simulation"), Namespace: v.Rollout.Namespace, Name: v.Rollout.Name, Assumes: append(said, "the Rollout stays suspended"),
			Steps: []SimulatedStep{}, End: simulation.AtRest, Until: metav1.NewTime(assumptions.Until),
		}, nil
	}
	result, err := simulation.Run(v.Input, assumptions)
	if err != nil {
		return Simulation{}, fmt.Errorf("simulate: %w", err)
	}
	return simulated(*v, result, said, assumptions.Until), nil
}
