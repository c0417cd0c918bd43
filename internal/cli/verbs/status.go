// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/cli/tree"
)

func newStatus(p *program) *cobra.Command {
	var out *output
	var fold tree.Folding
	cmd := &cobra.Command{
		Use: "status NAME", Aliases: []string{"describe", "tree"}, Short: "Show a Rollout and everything that its release reaches",
		Long: `Show what runs, what is next, and the gates, schedules, HealthChecks and targets,
down to the workloads. What is well is folded.`,
		Example: fmt.Sprintf(`  %[1]s status shop
  %[1]s status shop --all --show-conditions Kustomization`, p.called),
		Args: oneName(0, "the name of a Rollout"), ValidArgsFunction: p.completeRollouts,
		RunE: func(cmd *cobra.Command, args []string) error { return p.status(cmd.Context(), out, fold, args[0]) },
	}
	out = newOutput(cmd)
	cmd.Flags().BoolVar(&fold.All, "all", false, "show each object")
	cmd.Flags().StringSliceVar(&fold.Conditions, "show-conditions", nil, "show the conditions of objects of these kinds, or of all")
	p.readsFiles(cmd.Flags())
	return cmd
}

func (p *program) status(ctx context.Context, out *output, fold tree.Folding, name string) error {
	v, err := p.view(ctx, name, p.now())
	if err != nil {
		return err
	}
	whole := v.tree(ctx)
	if !out.isText() {
		return out.print(p, whole)
	}
	return show.Tree(p.out.Out, whole.Fold(fold), p.treeStyle(p.commandLine(whole.Root.Object.Namespace, "explain", name)))
}

// tree returns the tree of the Rollout, with all objects.
func (v view) tree(ctx context.Context) tree.Tree {
	return tree.Builder{Reader: v.below}.Build(ctx, v.Snapshot, v.Decision)
}

func (p *program) treeStyle(explain string) show.TreeStyle {
	return show.TreeStyle{Style: p.out.Style, Zone: p.zone, Explain: explain}
}
