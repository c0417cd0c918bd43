// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/test/e2e/env"
)

// Case 17. It does not run in parallel with the other tests, because it stops their
// controller.
func TestCommandLineSaysWhenTheStatusIsOutdated(t *testing.T) {
	s := gatedIn(env.New(t, plane))
	nina := s.CommandLine(s.Namespace+":nina", masters)
	const differs = "the status of the Rollout says something else. The controller may not run, may not have seen the newest objects yet"
	if explanation := nina.MustRun("explain", s.Name); strings.Contains(explanation, differs) {
		t.Fatalf("the controller runs, and the answers differ:\n%s", explanation)
	}

	if err := plane.Controller.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := plane.Controller.Start(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	gate := closedGate(s)
	s.Change(gate, func() { gate.Spec.Passing = new(true) })
	mustSay(t, nina.MustRun("explain", s.Name), "1.1.0   nothing holds it", differs, "1.1.0   status: SomeGatesBlocking; now: not held")

	if err := plane.Controller.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.AwaitState("1.1.0", v1alpha1.BakeSucceeded)
	if explanation := nina.MustRun("explain", s.Name); strings.Contains(explanation, differs) {
		t.Errorf("the controller runs again, and the answers differ:\n%s", explanation)
	}
}

// soon is long enough to ask several questions before a schedule opens.
const soon = 25 * time.Second

// Case 5.
func TestEveryAnswerNamesTheMomentAtWhichAScheduleOpens(t *testing.T) {
	s := newEnv(t)
	s.CreateFlux()
	closed := pastSchedule(s)
	closed.Spec.Rules = []v1alpha1.ScheduleRule{{Name: "always"}}
	s.Create(s.Rollout())
	s.Publish(s.Release("1.0.0"))
	s.AwaitState("1.0.0", v1alpha1.BakeSucceeded)
	s.Create(closed)
	s.AwaitClosed()
	s.Publish(s.Release("1.1.0"))
	s.AwaitCandidate("1.1.0")
	olga := s.CommandLine(s.Namespace+":olga", masters)

	opens := time.Now().UTC().Add(soon + time.Minute).Truncate(time.Minute)
	until, err := request.NewFreeze("the night", time.Now(), opens, time.UTC)
	if err != nil {
		t.Fatal(err)
	}
	s.Change(closed, func() { closed.Spec = until.Schedule(s.Namespace, closed.Spec.RolloutSelector).Spec })
	moment := "until " + opens.Format(time.RFC3339)
	s.Await("a condition that names "+moment, func(r *v1alpha1.Rollout) bool {
		return strings.Contains(env.Condition(r, v1alpha1.GatesPassingCondition), moment)
	})
	inText := opens.Format("Mon 2 Jan 15:04")
	answers := map[string][]string{
		"explain " + s.Name:  {"Time alone changes something at " + inText, moment},
		"status " + s.Name:   {"RolloutSchedule/nights: closed by rule freeze " + moment},
		"simulate " + s.Name: {moment, opens.Format("Mon 2 Jan 15:04:05") + " UTC   1.1.0 (#2) Deploying"},
		"get":                {moment},
	}
	for question, parts := range answers {
		mustSay(t, olga.MustRun(strings.Fields(question)...), parts...)
	}
	if late := time.Until(opens); late < 0 {
		t.Fatalf("the answers came %s after the schedule had opened: they prove nothing", -late)
	}

	promoted := s.AwaitState("1.1.0", v1alpha1.BakeSucceeded).Current()
	if promoted.Timestamp.Time.Before(opens) {
		t.Errorf("1.1.0 was promoted at %s, before the schedule opened at %s", promoted.Timestamp, opens)
	}
}
