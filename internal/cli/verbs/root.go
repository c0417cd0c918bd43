// SPDX-License-Identifier: Apache-2.0

// Package verbs is the command line: the tree of its verbs, and the process that runs one of
// them. The packages below it have the verbs, by what users want.
package verbs

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/act"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/bugreport"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/check"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/create"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/inspect"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/keys"
	"github.com/fluxrollouts/rollout-controller/internal/cli/verbs/simulate"
)

func init() {
	cobra.EnableCommandSorting = false // verbs are listed by how much they are used
}

// NewRoot returns the command tree.
func NewRoot(p *program.Program) *cobra.Command {
	root := &cobra.Command{
		Use:   fileOf(p.Called),
		Short: "Say what runs, why a release is not out, and what happens next",
		Long: `Say what runs, why a release is not out, and what happens next.

"` + p.Called + `" is about Rollouts of the Rollout Controller for Flux. It is not
"kubectl rollout", which is about Deployments.

Exit codes: 0 it is so; 1 the command failed; 2 the answer is no; 3 it ended
otherwise; 4 time ran out; 130 interrupted.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: p.Called},
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              unknownVerb,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(p.Out.Out)
	root.SetErr(p.Err.Out)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see: %s --help", err, cmd.CommandPath())
	})
	p.AddConnectionFlags(root.PersistentFlags())
	root.AddGroup(&cobra.Group{ID: look, Title: "Look:"}, &cobra.Group{ID: change, Title: "Change:"}, &cobra.Group{ID: about, Title: "About this program:"})
	for _, group := range []struct {
		id    string
		verbs []*cobra.Command
	}{ // the most used first
		{look, []*cobra.Command{
			inspect.NewGet(p), inspect.NewExplain(p), inspect.NewStatus(p), inspect.NewHistory(p), inspect.NewApprovals(p), inspect.NewWait(p), inspect.NewEvents(p), inspect.NewTrace(p),
			inspect.NewPipeline(p), inspect.NewUI(p, act.Page{Program: p}), simulate.NewSimulate(p), simulate.NewDiff(p), inspect.NewFreezes(p), check.NewLint(p), check.NewDoctor(p),
		}},
		{change, []*cobra.Command{
			create.NewCreate(p), act.NewPromote(p), act.NewRollback(p), act.NewApprove(p), act.NewReject(p), act.NewOverride(p), act.NewPin(p), act.NewUnpin(p), act.NewRetry(p), act.NewUnblock(p), act.NewWithdraw(p),
			act.NewSuspend(p), act.NewResume(p), act.NewFreeze(p), act.NewUnfreeze(p), act.NewQuarantine(p), act.NewLift(p), act.NewReconcile(p), act.NewAdopt(p), keys.NewKeys(p),
		}},
		{about, []*cobra.Command{bugreport.NewBugReport(p), check.NewVersion(p), newOptions(), newCompletion(p)}},
	} {
		for _, verb := range group.verbs {
			verb.GroupID = group.id
			verb.Aliases = append(verb.Aliases, aliases[verb.Name()]...)
			acceptKinds(verb)
			root.AddCommand(verb)
		}
	}
	root.SetHelpCommandGroupID(about)
	root.SetHelpFunc(withoutConnection(root.HelpFunc()))
	complete(root, completionsOf(p))
	return root
}

// Groups of verbs in the help.
const (
	look   = "look"
	change = "change"
	about  = "about"
)
