// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
)

// NewStatus returns the verb status.
func NewStatus(p *program.Program) *cobra.Command {
	var out *program.Output
	var fold tree.Folding
	cmd := &cobra.Command{
		Use: "status NAME", Aliases: []string{"describe", "tree"}, Short: "Show a Rollout and everything that its release reaches",
		Long: `Show what runs, what is next, and the gates, schedules, HealthChecks and targets,
down to the workloads. What is well is folded.

It does not wait, as "kubectl rollout status" does, and its exit code is 0 also for a
release that failed. To wait in CI, use the verb wait.`,
		Example: fmt.Sprintf(`  %[1]s status shop
  %[1]s status shop --all --show-conditions Kustomization`, p.Called),
		Args: program.OneName(0, "the name of a Rollout"), ValidArgsFunction: p.CompleteRollouts,
		RunE: func(cmd *cobra.Command, args []string) error { return status(cmd.Context(), p, out, fold, args[0]) },
	}
	out = program.NewOutput(cmd)
	cmd.Flags().BoolVar(&fold.All, "all", false, "show each object")
	cmd.Flags().StringSliceVar(&fold.Conditions, "show-conditions", nil, "show the conditions of objects of these kinds, or of all")
	p.ReadsFiles(cmd.Flags())
	return cmd
}

func status(ctx context.Context, p *program.Program, out *program.Output, fold tree.Folding, name string) error {
	v, err := p.View(ctx, name, p.Now())
	if err != nil {
		return err
	}
	whole := Tree(ctx, v)
	p.SayPartly(v)
	if !out.IsText() {
		return out.Print(p, whole)
	}
	return show.Tree(p.Out.Out, whole.Fold(fold), treeStyle(p, p.CommandLine(whole.Root.Object.Namespace, "explain", name)))
}

// Tree returns the tree of the Rollout, with all objects.
func Tree(ctx context.Context, v program.View) tree.Tree {
	return tree.Builder{Reader: v.Below}.Build(ctx, v.Snapshot, v.Decision)
}

func treeStyle(p *program.Program, explain string) show.TreeStyle {
	return show.TreeStyle{Style: p.Out.Style, Zone: p.Zone, Explain: explain}
}
