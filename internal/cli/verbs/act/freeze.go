// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/inspect"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

type freezing struct {
	*changing
	selector, until string
	all, everywhere bool
}

// NewFreeze returns the verb freeze.
func NewFreeze(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "freeze [NAME | -l SELECTOR | --all]", Short: "Hold every new release, of one Rollout or of many, or list what is frozen",
		Long: `Hold every new release, of one Rollout or of many.

Without any of NAME, -l and --all, it lists what it has made: until when, and why. The
ClusterRolloutSchedules among them are always listed, because they hold the Rollouts of
each namespace. Schedules and gates of others are not listed.

With NAME it creates a RolloutGate, which holds until "unfreeze". With -l or --all it
creates a RolloutSchedule, with -A as well a ClusterRolloutSchedule: they can end by
themselves, with --until, and they hold Rollouts that are created later, too.

What has started goes on. The output names what is not stopped.`,
		Example: fmt.Sprintf(`  # One Rollout
  %[1]s freeze shop -m "INC-4711"
  # All of the namespace, until tomorrow morning
  %[1]s freeze --all --until "2026-11-24 06:00" -m "maintenance of the database"
  # Some of all namespaces, for two hours
  %[1]s freeze -l tier=web -A --until 2h -m "INC-4711"
  # What is frozen?
  %[1]s freeze -A`, p.Called),
	}
	f := &freezing{changing: newChanging(p, cmd)}
	flags := cmd.Flags()
	flags.Lookup("message").Usage = "why nothing may go out, for those who wait; required"
	flags.Lookup("yes").Usage = "do not ask: as for other verbs, but a freeze lets nothing go out and never asks"
	flags.StringVarP(&f.selector, "selector", "l", "", "hold the Rollouts with these labels, as in kubectl")
	flags.BoolVar(&f.all, "all", false, "hold all Rollouts of the namespace")
	flags.BoolVarP(&f.everywhere, "all-namespaces", "A", false, "with -l or --all: in all namespaces; alone: list the freezes of all namespaces")
	flags.StringVar(&f.until, "until", "", "with -l or --all: hold until this time, or for a while ("+program.TimeFormats+")")
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		lists, err := f.listsOnly(cmd, len(args) > 0 || f.all || f.selector != "", "say what to freeze: one Rollout, or -l SELECTOR, or --all")
		switch {
		case err != nil:
			return err
		case lists:
			return inspect.ListFreezes(cmd.Context(), p, f.out, f.everywhere)
		}
		return f.run(cmd.Context(), args)
	}
	return cmd
}

// listsOnly reports whether a verb lists what it has made, because nothing to change was
// chosen. Flags of a change, the given ones besides those of all changes, do not go with a
// list.
func (c *changing) listsOnly(cmd *cobra.Command, chosen bool, choose string, flags ...string) (bool, error) {
	flags = append(flags, "message", "until", "yes", "dry-run")
	if !chosen && slices.ContainsFunc(flags, cmd.Flags().Changed) {
		return false, fmt.Errorf("%s; see: %s --help", choose, cmd.CommandPath())
	}
	return !chosen, nil
}

func (f *freezing) run(ctx context.Context, names []string) error {
	asked, err := f.asked(names)
	if err != nil {
		return err
	}
	selector, err := metav1.ParseToLabelSelector(f.selector)
	if err != nil {
		return fmt.Errorf("--selector: %w", err)
	}
	namespace, err := f.Namespace()
	if err != nil {
		return err
	}
	open, err := f.Connect(ctx)
	if err != nil {
		return err
	}
	asked = asked.By(f.user(ctx, open))
	if len(names) > 0 {
		return f.one(ctx, open, asked, client.ObjectKey{Namespace: namespace, Name: names[0]})
	}
	return f.many(ctx, open, asked, namespace, selector)
}

// asked returns the freeze that the flags ask for, or says what is wrong with them.
func (f *freezing) asked(names []string) (request.Freeze, error) {
	now := f.Now()
	if err := f.check(names); err != nil {
		return request.Freeze{}, err
	}
	var until time.Time
	if f.until != "" {
		var err error
		if until, err = program.TimeOf(f.until, now, f.Zone); err != nil {
			return request.Freeze{}, err
		}
	}
	return request.NewFreeze(f.why, now, until, f.Zone)
}

func (f *freezing) check(names []string) error {
	chosen := len(names)
	for _, given := range []bool{f.all, f.selector != ""} {
		if given {
			chosen++
		}
	}
	switch {
	case chosen != 1:
		return fmt.Errorf("say what to freeze: one Rollout, or -l SELECTOR, or --all; see: %s freeze --help", f.Called)
	case len(names) > 0 && f.everywhere:
		return fmt.Errorf("names and -A do not go together; write: %s", f.CommandLine("NAMESPACE", "freeze", names[0], "-m", ""))
	case len(names) > 0 && f.until != "":
		return errors.New("one Rollout is held by a RolloutGate, which has no clock: --until needs -l or --all")
	case f.why == "":
		return errors.New(`others will ask why nothing goes out: say it, with -m "..."`)
	}
	return f.begin()
}

// one freezes one Rollout.
func (f *freezing) one(ctx context.Context, open program.Cluster, asked request.Freeze, key client.ObjectKey) error {
	rollout := &v1alpha1.Rollout{}
	if err := open.Client.Get(ctx, key, rollout); apierrors.IsNotFound(err) {
		return f.NoSuchRollout(ctx, open.Client, key.Namespace, key.Name)
	} else if err != nil {
		return fmt.Errorf("read Rollout %s: %w", key, err)
	}
	gate := asked.Gate(key.Namespace, key.Name)
	if err := f.create(ctx, open, gate); apierrors.IsAlreadyExists(err) {
		return program.Refuse("RolloutGate %s exists already; see: %s", gate.Name, f.CommandLine(key.Namespace, "freeze"))
	} else if err != nil {
		return err
	}
	f.report(asked, gate, "Rollout "+key.String())
	var more []string
	if rollout.Current() == nil {
		more = append(more, "its first release")
	}
	f.notStopped([]v1alpha1.Rollout{*rollout}, more...)
	return nil
}

// many freezes the Rollouts that a selector selects, now and later.
func (f *freezing) many(ctx context.Context, open program.Cluster, asked request.Freeze, namespace string, selector *metav1.LabelSelector) error {
	where := "of namespace " + namespace
	var object client.Object = asked.Schedule(namespace, selector)
	if f.everywhere {
		namespace, where = "", "of all namespaces"
		object = asked.ClusterSchedule(selector)
	}
	if f.selector != "" {
		where += " with " + f.selector
	}
	get := []string{"get"}
	if f.everywhere {
		get = append(get, "-A")
	}
	rollouts, err := rolloutsWith(ctx, open, namespace, selector)
	switch {
	case err != nil:
		return err
	case len(rollouts) == 0:
		return program.Refuse("nothing was frozen: there are no Rollouts %s; see: %s", where, f.CommandLine(namespace, get...))
	}
	if err := f.createNumbered(ctx, open, object); err != nil {
		return err
	}
	f.report(asked, object, verdict.Count(len(rollouts), "Rollout")+" "+where)
	f.notStopped(rollouts, "the first release of a new Rollout")
	return nil
}

// rolloutsWith returns the Rollouts that a selector selects; of all namespaces if the name
// is empty.
func rolloutsWith(ctx context.Context, open program.Cluster, namespace string, labels *metav1.LabelSelector) ([]v1alpha1.Rollout, error) {
	selector, err := metav1.LabelSelectorAsSelector(labels)
	if err != nil {
		return nil, fmt.Errorf("--selector: %w", err)
	}
	var all []v1alpha1.Rollout
	for next := ""; ; {
		page := &v1alpha1.RolloutList{}
		err := open.Client.List(ctx, page, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(program.PageSize), client.Continue(next))
		if err != nil {
			return nil, fmt.Errorf("list Rollouts: %w", err)
		}
		all = append(all, page.Items...)
		if next = page.Continue; next == "" {
			return all, nil
		}
	}
}

// mostInAMinute is how many schedules of one place can have the same minute in their
// names.
const mostInAMinute = 9

// createNumbered creates a schedule. If there is one of its name, from the same minute, it
// gets a number.
func (f *freezing) createNumbered(ctx context.Context, open program.Cluster, object client.Object) error {
	name := object.GetName()
	for n := 2; ; n++ {
		err := f.create(ctx, open, object)
		if !apierrors.IsAlreadyExists(err) || n > mostInAMinute {
			return err
		}
		object.SetName(fmt.Sprintf("%s-%d", name, n))
	}
}

// report says what is frozen.
func (f *freezing) report(asked request.Freeze, object client.Object, what string) {
	sign, until := show.Well, "it is unfrozen"
	if f.dryRun != "" {
		sign = show.Do
	}
	if !asked.Until.IsZero() {
		until = show.Moment(asked.Until, f.Now(), f.Zone)
	}
	f.Out.Sentence(sign, "frozen until %s: %s (%s %s)%s", until, what, program.KindOf(object), object.GetName(), f.dryRunNote())
}

// notStopped says what goes on all the same.
func (f *freezing) notStopped(rollouts []v1alpha1.Rollout, more ...string) {
	var running []string
	for i := range rollouts {
		if does := f.runningNow(&rollouts[i]); does != "" {
			running = append(running, does)
		}
	}
	all := append([]string{"pins, force-deploy and bypass-gates"}, more...)
	if len(running) > 0 {
		all = append([]string{truncate.List(running)}, all...)
	}
	f.Out.Line("  not stopped: %s", strings.Join(all, "; "))
}

// runningNow says which release of a Rollout has started and not ended; empty if there is
// none.
func (f *freezing) runningNow(r *v1alpha1.Rollout) string {
	name, current := r.Name, r.Current()
	if f.everywhere {
		name = r.Namespace + "/" + r.Name
	}
	switch {
	case current == nil || !current.State().Running():
		return ""
	case current.State() == v1alpha1.BakeInProgress:
		return fmt.Sprintf("%s %s is baking", name, current.Version.Tag)
	}
	return fmt.Sprintf("%s %s is being deployed", name, current.Version.Tag)
}
