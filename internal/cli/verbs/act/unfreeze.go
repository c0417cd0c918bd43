// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/inspect"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
)

type unfreezing struct {
	*changing
	all, everywhere bool
}

// NewUnfreeze returns the verb unfreeze.
func NewUnfreeze(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "unfreeze NAME | --all | -A", Short: "End a freeze, and say first what goes out",
		Long: `End a freeze. It says first what goes out at once, and asks if something does.

NAME is a Rollout that was frozen by its name, or a freeze as "freeze" lists it. --all
ends the freezes of the namespace, and -A instead those of the whole cluster, which are
ClusterRolloutSchedules. Schedules and gates that "freeze" has not made stay.`,
		Example: fmt.Sprintf(`  # What would go out?
  %[1]s unfreeze --all --dry-run
  # One Rollout that was frozen by its name
  %[1]s unfreeze shop`, p.Called),
	}
	u := &unfreezing{changing: newUnsigned(p, cmd)}
	cmd.Flags().BoolVar(&u.all, "all", false, "end all freezes of the namespace")
	cmd.Flags().BoolVarP(&u.everywhere, "all-namespaces", "A", false, "end all freezes of the whole cluster, and none of a namespace")
	cmd.Args, cmd.ValidArgsFunction = cobra.ArbitraryArgs, p.CompleteFreezes
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return u.run(cmd.Context(), args) }
	return cmd
}

func (u *unfreezing) run(ctx context.Context, names []string) error {
	if err := u.check(names); err != nil {
		return err
	}
	namespace, err := u.Namespace()
	if err != nil {
		return err
	}
	open, err := u.Connect(ctx)
	if err != nil {
		return err
	}
	if u.everywhere {
		namespace = ""
	}
	return u.carryOut(ctx, open, "what is frozen", func() (*prediction, error) { return u.predict(ctx, open, namespace, names) })
}

// predict says what happens without the freezes that are to end.
func (u *unfreezing) predict(ctx context.Context, open program.Cluster, namespace string, names []string) (*prediction, error) {
	facts, err := u.Take(ctx, open, namespace)
	if err != nil {
		return nil, err
	}
	ended, err := u.chosen(ctx, facts, namespace, names)
	if err != nil {
		return nil, err
	}
	p := &prediction{ends: ended}
	for _, object := range ended {
		a := inspect.FreezeOf(object, u.Now())
		p.more = append(p.more, fmt.Sprintf("ends %s %s, frozen until %s: %s", a.Kind, a.Name, a.End(u.Now(), u.Zone), a.Why))
	}
	after, err := unfrozen(ctx, facts, ended)
	if err != nil {
		return nil, err
	}
	if err := p.effects(ctx, u.changing.Program, facts, after); err != nil {
		return nil, err
	}
	p.effect, p.more = p.more[0], p.more[1:]
	if !p.promotes {
		p.more = append(p.more, "nothing goes out at once")
	}
	return p, nil
}

func (u *unfreezing) check(names []string) error {
	if several := u.all || u.everywhere; len(names) > 1 || several == (len(names) == 1) {
		return fmt.Errorf("say what to unfreeze: a Rollout or a freeze, or --all, or -A; see: %s", u.CommandLine("", "freeze", "-A"))
	}
	return u.begin()
}

// chosen returns the freezes that are to end.
func (u *unfreezing) chosen(ctx context.Context, facts client.Reader, namespace string, names []string) ([]client.Object, error) {
	where, lists := "in namespace "+namespace, inspect.FreezeLists()
	if u.everywhere {
		where, lists = "of the whole cluster", []client.ObjectList{&v1alpha1.ClusterRolloutScheduleList{}}
	}
	all, err := inspect.FreezesOf(ctx, facts, namespace, lists...)
	if err != nil {
		return nil, err
	}
	if len(names) > 0 {
		return u.named(ctx, facts, all, client.ObjectKey{Namespace: namespace, Name: names[0]})
	}
	if len(all) == 0 {
		return nil, isSo("there is no freeze " + where)
	}
	return all, nil
}

// named returns the freezes that have a name, or hold the Rollout of this name.
func (u *unfreezing) named(ctx context.Context, facts client.Reader, all []client.Object, key client.ObjectKey) ([]client.Object, error) {
	all = slices.DeleteFunc(all, func(o client.Object) bool { return !isFreezeOf(o, key.Name) })
	switch {
	case len(all) > 0:
		return all, nil
	case facts.Get(ctx, key, &v1alpha1.Rollout{}) == nil:
		return nil, isSo("no freeze holds Rollout " + key.String() + " by its name")
	}
	return nil, fmt.Errorf("there is no freeze and no Rollout %s in namespace %s; see: %s", key.Name, key.Namespace, u.CommandLine("", "freeze", "-A"))
}

// isFreezeOf reports whether a freeze has a name, or holds the Rollout of this name.
func isFreezeOf(o client.Object, name string) bool {
	gate, isGate := o.(*v1alpha1.RolloutGate)
	return o.GetName() == name || isGate && gate.RolloutName() == name
}

// unfrozen returns the facts without freezes, and without the gates that show the state of
// a schedule among them: Kubernetes removes those with it.
func unfrozen(ctx context.Context, facts *snapshot.Snapshot, ended []client.Object) (*snapshot.Snapshot, error) {
	gates := &v1alpha1.RolloutGateList{}
	if err := facts.List(ctx, gates); err != nil {
		return nil, fmt.Errorf("list RolloutGates: %w", err)
	}
	gone := slices.Clone(ended)
	for i := range gates.Items {
		gate := &gates.Items[i]
		if slices.ContainsFunc(ended, func(o client.Object) bool { return o.GetUID() == gather.OwnerOf(gate) }) {
			gone = append(gone, gate)
		}
	}
	return facts.Without(gone...)
}

// remove deletes objects as they were when their effect was shown.
func (c *changing) remove(ctx context.Context, open program.Cluster, all []client.Object) error {
	for _, object := range all {
		options := []client.DeleteOption{client.Preconditions{UID: ptr.To(object.GetUID())}}
		if c.dryRun == dryRunServer {
			options = append(options, client.DryRunAll)
		}
		if err := open.Client.Delete(ctx, object, options...); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %s %s: %w", program.KindOf(object), object.GetName(), err)
		}
		c.Out.Sentence(show.Well, "%s %s: removed%s", program.KindOf(object), object.GetName(), c.dryRunNote())
	}
	return c.print(all...)
}
