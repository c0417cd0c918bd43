// SPDX-License-Identifier: Apache-2.0

package act

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/inspect"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// NewLift returns the verb lift.
func NewLift(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "lift NAME [VERSION]", Short: "End a quarantine: its release may go out again",
		Long: `End a quarantine: its release may go out again, also where it has failed.

NAME is a Rollout that knows the release, or a ReleaseQuarantine. A version is needed only
if more than one release of the Rollout is in quarantine. The ReleaseQuarantine stays as the record that you have ended it: if you
delete it instead, the next failure creates another one, and where the release has
failed before, it stays out.`,
		Example: fmt.Sprintf(`  # Which Rollouts may take the release then?
  %[1]s lift shop 1.5.0 --dry-run
  %[1]s lift sha256-3f2a9c1d5b7e8f60a1b2`, p.Called),
	}
	c := newUnsigned(p, cmd)
	cmd.ValidArgsFunction = p.CompleteQuarantines
	program.TakesVersion(cmd, &c.tag, "the release, if NAME is a Rollout")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return c.lift(cmd.Context(), args[0]) }
	return cmd
}

func (c *changing) lift(ctx context.Context, name string) error {
	if err := c.begin(); err != nil {
		return err
	}
	namespace, err := c.Namespace()
	if err != nil {
		return err
	}
	open, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	return c.carryOut(ctx, open, name, func() (*prediction, error) { return c.predictLift(ctx, open, key) })
}

// predictLift decides about all Rollouts of the namespace as without the quarantine.
func (c *changing) predictLift(ctx context.Context, open program.Cluster, key client.ObjectKey) (*prediction, error) {
	facts, err := c.Take(ctx, open, key.Namespace)
	if err != nil {
		return nil, err
	}
	from, err := c.liftable(ctx, facts, key)
	if err != nil {
		return nil, err
	}
	to := from.DeepCopy()
	request.Lift(from.Name).ChangeQuarantine(from.Name, &to.Spec)
	if from.Spec.Lifted {
		return nil, isSo("ReleaseQuarantine " + from.Name + " is lifted already")
	}
	p := &prediction{from: from, to: to, effect: fmt.Sprintf("ReleaseQuarantine %s holds %s no more", from.Name, inspect.ReleaseOf(&from.Spec))}
	after, err := facts.With(to)
	if err != nil {
		return nil, err
	}
	if err := p.effects(ctx, c.Program, facts, after); err != nil {
		return nil, err
	}
	if !p.promotes {
		p.more = append(p.more, "nothing goes out at once")
	}
	return p, c.UndoneByGit(from, to)
}

// liftable returns the quarantine of a name, or else the one that holds a release of the
// Rollout of this name.
func (c *changing) liftable(ctx context.Context, facts *snapshot.Snapshot, key client.ObjectKey) (*v1alpha1.ReleaseQuarantine, error) {
	from := &v1alpha1.ReleaseQuarantine{}
	err := facts.Get(ctx, key, from)
	switch {
	case err == nil && c.tag != "":
		return nil, fmt.Errorf("%s is a ReleaseQuarantine: a version goes only with the name of a Rollout", key.Name)
	case err == nil:
		return from, nil
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("read ReleaseQuarantine %s: %w", key, err)
	case facts.Get(ctx, key, &v1alpha1.Rollout{}) != nil:
		return nil, c.noSuchQuarantine(ctx, facts, key)
	}
	v, err := c.ViewIn(ctx, facts, key, c.Now())
	if err != nil {
		return nil, err
	}
	names := quarantinesOf(v, c.tag)
	switch len(names) {
	case 0:
		return nil, program.Refuse("no quarantine of namespace %s holds %s of Rollout %s; see: %s",
			key.Namespace, cmp.Or(c.tag, "a release"), key.Name, c.CommandLine(key.Namespace, "quarantine"))
	case 1:
		key.Name = names[0]
		return from, facts.Get(ctx, key, from)
	}
	lines := []string{"more than one quarantine holds releases of Rollout " + key.Name + ": say which"}
	for _, name := range names {
		lines = append(lines, c.CommandLine(key.Namespace, "lift", name))
	}
	return nil, program.Refuse("%s", strings.Join(lines, "\n"))
}

// quarantinesOf returns the names of the quarantines of the namespace that hold a release of
// a Rollout; of any of its releases if the tag is empty.
func quarantinesOf(v program.View, tag string) []string {
	known := slices.Clone(v.Decision.Ledger)
	for i := range v.Rollout.Status.History {
		known = append(known, v.Rollout.Status.History[i].Version)
	}
	var names []string
	for _, release := range known {
		if tag != "" && tag != release.Tag {
			continue
		}
		for _, q := range promotion.QuarantinesOn(v.Input, release) {
			if name, own := q.OwnName(); own && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// noSuchQuarantine says which quarantines there are. One of the whole cluster is not lifted
// for a namespace.
func (c *changing) noSuchQuarantine(ctx context.Context, facts *snapshot.Snapshot, key client.ObjectKey) error {
	cluster := &v1alpha1.ClusterReleaseQuarantine{}
	if facts.Get(ctx, client.ObjectKey{Name: key.Name}, cluster) == nil {
		return fmt.Errorf(`%s is a ClusterReleaseQuarantine, and holds %s in other namespaces, too; to end it in all of them:
%s`, key.Name, inspect.ReleaseOf(&cluster.Spec.ReleaseQuarantineSpec),
			c.CommandLineOf("kubectl", "", "patch", "clusterreleasequarantine", key.Name, "--type", "merge", "-p", `{"spec":{"lifted":true}}`))
	}
	known := "there are none"
	var names []string
	for _, q := range program.QuarantinesIn(ctx, facts, key.Namespace) {
		names = append(names, q.Name)
	}
	if len(names) > 0 {
		known = "there are " + truncate.List(names)
	}
	return fmt.Errorf("there is no ReleaseQuarantine %s in namespace %s; %s", key.Name, key.Namespace, known)
}
