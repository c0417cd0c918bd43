// SPDX-License-Identifier: Apache-2.0

// Package verbs is the command line: a tree of verbs, and the process that runs one of them.
package verbs

import (
	"fmt"

	"github.com/spf13/cobra"
)

// newRoot returns the command tree.
func newRoot(p *program) *cobra.Command {
	root := &cobra.Command{
		Use:   fileOf(p.called),
		Short: "Say what runs, why a release is not out, and what happens next",
		Long: `Say what runs, why a release is not out, and what happens next.

"` + p.called + `" is about Rollouts of the Rollout Controller for Flux. It is not
"kubectl rollout", which is about Deployments.

Exit codes: 0 it is so; 1 the command failed; 2 the answer is no; 3 it ended
otherwise; 4 time ran out; 130 interrupted.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: p.called},
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.NoArgs,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetOut(p.out.Out)
	root.SetErr(p.err.Out)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see: %s --help", err, cmd.CommandPath())
	})
	p.kubeconfig.AddFlags(root.PersistentFlags())
	root.AddGroup(&cobra.Group{ID: look, Title: "Look:"}, &cobra.Group{ID: change, Title: "Change:"}, &cobra.Group{ID: about, Title: "About this program:"})
	for group, verbs := range map[string][]*cobra.Command{
		look:   {newGet(p), newExplain(p), newHistory(p), newSimulate(p), newDiff(p), newWait(p), newStatus(p), newPipeline(p), newWatch(p), newTrace(p), newEvents(p), newFreezes(p), newLint(p), newDoctor(p)},
		change: {newPromote(p), newPin(p), newUnpin(p), newRollback(p), newRetry(p), newUnblock(p), newAdopt(p), newWithdraw(p), newApprove(p), newSuspend(p), newResume(p), newFreeze(p), newUnfreeze(p), newQuarantine(p), newLift(p), newReconcile(p), newKeys(p)},
		about:  {newBugReport(p), newVersion(p), newCompletion(p)},
	} {
		for _, verb := range verbs {
			verb.GroupID = group
			root.AddCommand(verb)
		}
	}
	root.AddCommand(newManual(p))
	root.SetHelpCommandGroupID(about)
	return root
}

// Groups of verbs in the help.
const (
	look   = "look"
	change = "change"
	about  = "about"
)
