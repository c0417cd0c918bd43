// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
)

// completionTimeout is how long a user waits for names after pressing the tab key.
const completionTimeout = 3 * time.Second

// CompleteRollouts completes the first argument with the Rollouts of the namespace.
func (p *Program) CompleteRollouts(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return complete(p, cmd, args, func(page *v1alpha1.RolloutList, add func(string)) {
		for i := range page.Items {
			add(page.Items[i].Name)
		}
	})
}

// CompleteQuarantines completes the first argument with the quarantines that are not
// lifted.
func (p *Program) CompleteQuarantines(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return complete(p, cmd, args, func(page *v1alpha1.ReleaseQuarantineList, add func(string)) {
		for i := range page.Items {
			if !page.Items[i].Spec.Lifted {
				add(page.Items[i].Name)
			}
		}
	})
}

// CompleteApplications completes the first argument with the names of applications.
func (p *Program) CompleteApplications(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return complete(p, cmd, args, func(page *environmentsv1.EnvironmentList, add func(string)) {
		for i := range page.Items {
			add(page.Items[i].Spec.Name)
		}
	})
}

// complete completes the first argument with the names that all pages of a list add, each
// of them once. If something cannot be read, it completes what it has read until then: a
// shell cannot show an error.
func complete[L any, P interface {
	*L
	client.ObjectList
}](p *Program, cmd *cobra.Command, args []string, of func(page P, add func(string))) ([]cobra.Completion, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 {
		return nil, none
	}
	ctx, stop := context.WithTimeout(cmd.Context(), completionTimeout)
	defer stop()
	namespace, err := p.Namespace()
	if err != nil {
		return nil, none
	}
	c, err := p.Connect(ctx)
	if err != nil {
		return nil, none
	}
	var names []string
	_ = EachPage(ctx, c.Client, namespace, func(page P) {
		of(page, func(name string) { names = append(names, name) })
	})
	slices.Sort(names)
	return slices.Compact(names), none
}
