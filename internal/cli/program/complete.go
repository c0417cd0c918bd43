// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	environmentsv1 "github.com/fluxrollouts/rollout-controller/api/environments/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
)

// completionTimeout is how long a user waits for names after pressing the tab key.
const completionTimeout = 3 * time.Second

// none is what a shell must not do: complete names of files.
const none = cobra.ShellCompDirectiveNoFileComp

// CompleteRollouts completes the arguments of a verb as its usage calls them: NAME is a
// Rollout of the namespace, and what comes after it is about that Rollout.
func (p *Program) CompleteRollouts(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch word := argument(cmd, len(args)); word {
	case "NAME":
		return complete(p, cmd, func(page *v1alpha1.RolloutList, add func(string)) {
			for i := range page.Items {
				if name := page.Items[i].Name; !slices.Contains(args, name) {
					add(name)
				}
			}
		})
	case "TAG", "VERSION":
		return p.CompleteReleases(cmd, args, "")
	case "ID":
		return p.completeIDs(cmd, args)
	default:
		if strings.Contains(word, "|") && word == strings.ToLower(word) {
			return strings.Split(word, "|"), none
		}
	}
	return nil, none
}

// argument returns what the usage of a verb calls an argument.
func argument(cmd *cobra.Command, at int) string {
	words := strings.Fields(cmd.Use)[1:]
	if len(words) > 0 && at >= len(words) && strings.HasSuffix(words[len(words)-1], "...]") {
		at = len(words) - 1
	}
	if at >= len(words) || slices.Contains(words[:at], "|") {
		return ""
	}
	return strings.TrimSuffix(strings.Trim(words[at], "[]"), "...")
}

// CompleteReleases completes with the tags that the Rollout of the first argument knows:
// candidates, what it has deployed, and what else is available, the newest first.
func (p *Program) CompleteReleases(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return p.ofRollout(cmd, args, func(r *v1alpha1.Rollout, add func(tag, what string)) {
		for i := range r.Status.ReleaseCandidates {
			add(r.Status.ReleaseCandidates[i].Tag, "candidate")
		}
		addHistory(r, add)
		for _, release := range slices.Backward(r.Status.AvailableReleases) {
			add(release.Tag, "available")
		}
	})
}

// CompleteDeployed completes with the tags that the Rollout of the first argument has
// deployed, the newest first.
func (p *Program) CompleteDeployed(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return p.ofRollout(cmd, args, addHistory)
}

func addHistory(r *v1alpha1.Rollout, add func(tag, what string)) {
	for i := range r.Status.History {
		add(r.Status.History[i].Version.Tag, string(r.Status.History[i].State()))
	}
}

func (p *Program) completeIDs(cmd *cobra.Command, args []string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return p.ofRollout(cmd, args, func(r *v1alpha1.Rollout, add func(id, what string)) {
		for i := range r.Status.History {
			if entry := &r.Status.History[i]; entry.ID != nil {
				add(fmt.Sprint(*entry.ID), entry.Version.Tag)
			}
		}
	})
}

// ofRollout completes with what is added of the Rollout of the first argument, each word
// once.
func (p *Program) ofRollout(cmd *cobra.Command, args []string, of func(r *v1alpha1.Rollout, add func(word, what string))) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, none
	}
	ctx, stop := context.WithTimeout(cmd.Context(), completionTimeout)
	defer stop()
	rollout, err := p.Rollout(ctx, PlainNames(args)[0])
	if err != nil {
		return nil, none
	}
	known := map[string]bool{}
	var all []cobra.Completion
	of(rollout, func(word, what string) {
		if !known[word] {
			known[word] = true
			all = append(all, cobra.CompletionWithDesc(word, what))
		}
	})
	return all, none | cobra.ShellCompDirectiveKeepOrder
}

// CompleteGates completes with the gates of the Rollout of the first argument.
func (p *Program) CompleteGates(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return complete(p, cmd, func(page *v1alpha1.RolloutGateList, add func(string)) {
		for i := range page.Items {
			if slices.Contains(PlainNames(args), page.Items[i].RolloutName()) {
				add(page.Items[i].Name)
			}
		}
	})
}

// CompleteRoles completes with the roles that gates of the Rollout of the first argument ask for.
func (p *Program) CompleteRoles(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return complete(p, cmd, func(page *v1alpha1.RolloutGateList, add func(string)) {
		for i := range page.Items {
			asks := page.Items[i].Spec.Approvals
			if asks != nil && asks.Role != "" && slices.Contains(PlainNames(args), page.Items[i].RolloutName()) {
				add(asks.Role)
			}
		}
	})
}

// CompleteFreezes completes with the Rollouts that are frozen by their name, and with the
// freezes of the namespace that have one of their own.
func (p *Program) CompleteFreezes(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	rollouts, _ := complete(p, cmd, func(page *v1alpha1.RolloutGateList, add func(string)) {
		for i := range page.Items {
			if page.Items[i].Labels[v1alpha1.ManagedByLabel] == request.FreezeManager {
				add(page.Items[i].RolloutName())
			}
		}
	})
	schedules, _ := complete(p, cmd, func(page *v1alpha1.RolloutScheduleList, add func(string)) {
		for i := range page.Items {
			if page.Items[i].Labels[v1alpha1.ManagedByLabel] == request.FreezeManager {
				add(page.Items[i].Name)
			}
		}
	})
	return slices.Concat(rollouts, schedules), none
}

// CompleteNamespaces completes with the namespaces of the cluster.
func (p *Program) CompleteNamespaces(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return complete(p, cmd, func(page *corev1.NamespaceList, add func(string)) {
		for i := range page.Items {
			add(page.Items[i].Name)
		}
	})
}

// CompleteKubeconfig completes with names in the kubeconfig.
func (p *Program) CompleteKubeconfig(of func(clientcmdapi.Config) []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		config, err := p.Kubeconfig.ToRawKubeConfigLoader().RawConfig()
		if err != nil {
			return nil, none
		}
		return of(config), none
	}
}

// CompleteQuarantines completes the first argument with the quarantines that are not
// lifted.
func (p *Program) CompleteQuarantines(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, none
	}
	return complete(p, cmd, func(page *v1alpha1.ReleaseQuarantineList, add func(string)) {
		for i := range page.Items {
			if !page.Items[i].Spec.Lifted {
				add(page.Items[i].Name)
			}
		}
	})
}

// CompleteApplications completes the first argument with the names of applications.
func (p *Program) CompleteApplications(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, none
	}
	return complete(p, cmd, func(page *environmentsv1.EnvironmentList, add func(string)) {
		for i := range page.Items {
			add(page.Items[i].Spec.Name)
		}
	})
}

// CompleteNames completes with the objects of a kind in the namespace.
func CompleteNames[L any, P interface {
	*L
	client.ObjectList
}](p *Program) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return complete(p, cmd, func(page P, add func(string)) {
			_ = meta.EachListItem(page, func(item runtime.Object) error { // it has no errors of its own
				add(item.(client.Object).GetName())
				return nil
			})
		})
	}
}

// complete completes with the names that all pages of a list add, each of them once. If
// something cannot be read, it completes what it has read until then: a shell cannot show
// an error.
func complete[L any, P interface {
	*L
	client.ObjectList
}](p *Program, cmd *cobra.Command, of func(page P, add func(string))) ([]cobra.Completion, cobra.ShellCompDirective) {
	ctx, stop := context.WithTimeout(cmd.Context(), completionTimeout)
	defer stop()
	namespace, err := p.Namespace()
	if err != nil {
		return nil, none
	}
	if _, everywhere := any(P(new(L))).(*corev1.NamespaceList); everywhere {
		namespace = ""
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
