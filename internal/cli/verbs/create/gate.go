// SPDX-License-Identifier: Apache-2.0

package create

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
)

type creatingGate struct {
	*creating
	rollout, why string
	passing      bool
	versions     []string
	approvals    int32
	role         string
}

func newGate(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "gate NAME", Short: "Create a RolloutGate, which holds releases until it is opened",
		Long: `Create a RolloutGate, which holds the releases of one Rollout until it is opened.

It is closed, unless --passing, --allow or --approvals is given. "approve" opens it for one
version. The first release of a Rollout goes past a closed gate.

With --approvals, it asks that so many people approve each release, and also the first one.
Another user than the one who chose it must do so; see RolloutApproval.`,
		Example: fmt.Sprintf(`  # Each release waits for an approval
  %[1]s create gate approval --rollout shop -m "tested by QA"
  # Two people of the team "security" approve each release
  %[1]s create gate four-eyes --rollout shop --approvals 2 --role security
  # Only these versions, as YAML for Git
  %[1]s create gate tested --rollout shop --allow 1.4.0,1.4.1 --export`, p.Called),
	}
	g := &creatingGate{creating: newCreating(p, cmd)}
	g.local = true
	flags := cmd.Flags()
	flags.StringVar(&g.rollout, "rollout", "", "the Rollout whose releases it holds; required")
	flags.StringVarP(&g.why, "message", "m", "", "what it waits for, for those whose releases it holds")
	flags.BoolVar(&g.passing, "passing", false, "create it open")
	flags.StringSliceVar(&g.versions, "allow", nil, "let only these versions through")
	flags.Int32Var(&g.approvals, "approvals", 0, "ask for the approvals of so many people, from 1 to 10")
	flags.StringVar(&g.role, "role", "", "with --approvals: count only those of this role")
	complete(cmd, map[string]cobra.CompletionFunc{"rollout": program.CompleteNames[v1alpha1.RolloutList](p)})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return g.run(cmd.Context(), func(_ context.Context, w *world) (*plan, error) { return g.plan(w, args[0]) })
	}
	return cmd
}

func (g *creatingGate) plan(w *world, name string) (*plan, error) {
	if g.rollout == "" {
		return nil, errors.New("say which Rollout it is for, with --rollout")
	}
	if g.role != "" && g.approvals == 0 {
		return nil, errors.New("--role says whose approvals count: it needs --approvals")
	}
	gate := &v1alpha1.RolloutGate{Spec: v1alpha1.RolloutGateSpec{
		RolloutRef: &v1alpha1.LocalObjectReference{Name: g.rollout}, Passing: new(g.passing || len(g.versions) > 0 || g.approvals != 0),
	}}
	if len(g.versions) > 0 {
		gate.Spec.AllowedVersions = &g.versions
	}
	if g.approvals != 0 {
		gate.Spec.Approvals = &v1alpha1.Approvals{Count: &g.approvals, Role: g.role}
	}
	g.name(gate, w.namespace, name)
	describe(gate, g.why)
	p := &plan{external: []lint.External{{Kind: v1alpha1.RolloutKind, Namespace: w.namespace, Name: g.rollout}}}
	p.objects = append(p.objects, gate)
	p.effect = func(ctx context.Context, after *world) (string, error) { return g.decision(ctx, after, g.rollout) }
	if !*gate.Spec.Passing {
		p.next = []string{"to let a release through: " + g.CommandLine(w.namespace, "approve", g.rollout, "--gate", name, "--version", "VERSION")}
	}
	return p, nil
}
