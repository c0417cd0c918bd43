// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/cli/snapshot"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// NewLift returns the verb lift.
func NewLift(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "lift NAME", Short: "End a quarantine: its release may go out again",
		Long: `End a quarantine: its release may go out again, also where it has failed.

NAME is a ReleaseQuarantine. It stays as the record that you have ended it: if you
delete it instead, the next failure creates another one, and where the release has
failed before, it stays out.`,
		Example: fmt.Sprintf(`  # Which Rollouts may take the release then?
  %[1]s lift sha256-3f2a9c1d5b7e8f60a1b2 --dry-run
  %[1]s lift sha256-3f2a9c1d5b7e8f60a1b2`, p.Called),
	}
	c := newUnsigned(p, cmd)
	cmd.Args, cmd.ValidArgsFunction = program.OneName(0, "the name of a ReleaseQuarantine"), p.CompleteQuarantines
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return c.lift(cmd.Context(), args[0]) }
	return cmd
}

func (c *changing) lift(ctx context.Context, name string) error {
	if err := c.checkDryRun(); err != nil {
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
	from := &v1alpha1.ReleaseQuarantine{}
	if err := facts.Get(ctx, key, from); apierrors.IsNotFound(err) {
		return nil, c.noSuchQuarantine(ctx, facts, key)
	} else if err != nil {
		return nil, fmt.Errorf("read ReleaseQuarantine %s: %w", key, err)
	}
	to := from.DeepCopy()
	request.Lift(key.Name).ChangeQuarantine(key.Name, &to.Spec)
	if from.Spec.Lifted {
		return &prediction{already: "ReleaseQuarantine " + key.Name + " is lifted already"}, nil
	}
	p := &prediction{from: from, to: to, effect: fmt.Sprintf("ReleaseQuarantine %s holds %s no more", key.Name, releaseOf(&from.Spec))}
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
	return p, program.UndoneByGit(from, to)
}

// noSuchQuarantine says which quarantines there are. One of the whole cluster is not lifted
// for a namespace.
func (c *changing) noSuchQuarantine(ctx context.Context, facts *snapshot.Snapshot, key client.ObjectKey) error {
	cluster := &v1alpha1.ClusterReleaseQuarantine{}
	if facts.Get(ctx, client.ObjectKey{Name: key.Name}, cluster) == nil {
		return fmt.Errorf(`%s is a ClusterReleaseQuarantine, and holds %s in other namespaces, too; to end it in all of them:
kubectl patch clusterreleasequarantine %s --type merge -p '{"spec":{"lifted":true}}'`, key.Name, releaseOf(&cluster.Spec.ReleaseQuarantineSpec), key.Name)
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

// releaseOf names the release of a quarantine: by its tags, or by its digest.
func releaseOf(spec *v1alpha1.ReleaseQuarantineSpec) string {
	if len(spec.Tags) > 0 {
		return truncate.List(spec.Tags)
	}
	return spec.Digest
}
