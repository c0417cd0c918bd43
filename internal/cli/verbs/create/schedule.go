// SPDX-License-Identifier: Apache-2.0

package create

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/schedule"
)

type creatingSchedule struct {
	*creating
	selector, zone, why  string
	all, everywhere      bool
	allow, deny, excepts []string
}

func newSchedule(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "schedule NAME", Short: "Create a schedule: when releases may go out, or may not",
		Long: `Create a RolloutSchedule: when releases may go out, or may not. With -A it is a
ClusterRolloutSchedule, which is about all namespaces.

A window has days of the week, a time of the day and dates, as far as they are needed:
"Mon-Fri 08:00-17:00", "Fri 15:00-24:00", "Sat,Sun", "2026-12-20..2027-01-03". Each flag
for windows can be given several times. A window over midnight belongs to the day on which
it starts.`,
		Example: fmt.Sprintf(`  # Releases go out in working hours only
  %[1]s create schedule working-hours --all --allow "Mon-Fri 08:00-17:00" --timezone Europe/Berlin
  # No releases around the end of the year, but on one day
  %[1]s create schedule year-end -l tier=web --deny 2026-12-20..2027-01-03 --except 2026-12-28 --export`, p.Called),
	}
	s := &creatingSchedule{creating: newCreating(p, cmd)}
	s.local = true
	flags := cmd.Flags()
	flags.StringVarP(&s.selector, "selector", "l", "", "for the Rollouts with these labels, as in kubectl")
	flags.BoolVar(&s.all, "all", false, "for all Rollouts of the namespace")
	flags.BoolVarP(&s.everywhere, "all-namespaces", "A", false, "with -l or --all: in all namespaces")
	flags.StringArrayVar(&s.allow, "allow", nil, "releases may go out in this window, and at no other time")
	flags.StringArrayVar(&s.deny, "deny", nil, "no release goes out in this window")
	flags.StringArrayVar(&s.excepts, "except", nil, "the schedule does not count in this window")
	flags.StringVar(&s.zone, "timezone", "UTC", "the time zone of the windows, such as Europe/Berlin")
	flags.StringVarP(&s.why, "message", "m", "", "what it is for, for those whose releases it holds")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return s.run(cmd.Context(), func(_ context.Context, w *world) (*plan, error) { return s.plan(w, args[0]) })
	}
	return cmd
}

func (s *creatingSchedule) plan(w *world, name string) (*plan, error) {
	spec, err := s.spec()
	if err != nil {
		return nil, err
	}
	parsed, err := schedule.Parse(spec)
	if err != nil {
		return nil, err
	}
	var object client.Object = &v1alpha1.RolloutSchedule{Spec: *spec}
	namespace := w.namespace
	if s.everywhere {
		namespace = ""
		object = &v1alpha1.ClusterRolloutSchedule{Spec: v1alpha1.ClusterRolloutScheduleSpec{RolloutScheduleSpec: *spec}}
	}
	s.name(object, namespace, name)
	describe(object, s.why)
	p := &plan{objects: []client.Object{object}}
	p.effect = func(ctx context.Context, after *world) (string, error) { return s.selects(ctx, after, parsed) }
	return p, nil
}

// spec returns what the flags ask for, or says what is wrong with them.
func (s *creatingSchedule) spec() (*v1alpha1.RolloutScheduleSpec, error) {
	switch {
	case s.all == (s.selector != ""):
		return nil, errors.New("say which Rollouts it is for: -l SELECTOR, or --all")
	case (len(s.allow) > 0) == (len(s.deny) > 0):
		return nil, errors.New("say when releases may go out, with --allow WINDOW, or when they may not, with --deny WINDOW; one of the two")
	}
	selector, err := metav1.ParseToLabelSelector(s.selector)
	if err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	spec := &v1alpha1.RolloutScheduleSpec{RolloutSelector: selector, Timezone: s.zone, Action: v1alpha1.ScheduleAllow}
	windows := s.allow
	if len(s.deny) > 0 {
		spec.Action, windows = v1alpha1.ScheduleDeny, s.deny
	}
	if spec.Rules, err = rulesOf(windows); err == nil {
		spec.Exceptions, err = rulesOf(s.excepts)
	}
	return spec, err
}

// selects says which Rollouts the schedule is about, and whether they may promote now.
func (s *creatingSchedule) selects(ctx context.Context, after *world, parsed *schedule.Schedule) (string, error) {
	now := s.Now()
	state, is := parsed.At(now), "closed"
	if state.Open {
		is = "open"
	}
	if !state.Next.IsZero() {
		is += " until " + show.Moment(state.Next.In(s.Zone), now, s.Zone)
	}
	if s.everywhere {
		return "it is " + is, nil
	}
	selector, err := labels.Parse(s.selector)
	if err != nil {
		return "", fmt.Errorf("--selector: %w", err)
	}
	list := &v1alpha1.RolloutList{}
	if err := after.facts.List(ctx, list, client.InNamespace(after.namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return "", err
	}
	return fmt.Sprintf("it is %s, for %s", is, verdict.Count(len(list.Items), "Rollout")), nil
}
