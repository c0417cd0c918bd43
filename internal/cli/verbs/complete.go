// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fluxrollouts/rollout-controller/internal/cli/lint"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
)

// flagsWithFiles have the name of a file. Shells complete it by themselves.
var flagsWithFiles = []string{"filename", "output-file", "public", "kubeconfig", "certificate-authority", "client-certificate", "client-key"}

// completionsOf returns what completes the values of flags, by their names.
func completionsOf(p *program.Program) map[string]cobra.CompletionFunc {
	releases := p.CompleteReleases
	return map[string]cobra.CompletionFunc{
		"version": releases, "release": releases, "pin": releases, "to": p.CompleteDeployed, "gate": p.CompleteGates, "role": p.CompleteRoles, "approved": releases,
		"for":             choices("version=", "applied=", "promoted=", "candidate=", "idle"),
		"types":           choices("Normal", "Warning"),
		"status-selector": choices("ready=true", "ready=false", "ready=unknown"),
		"dry-run":         choices("client", "server"),
		"algorithm":       choices("ed25519", "ecdsa"),
		"disable":         choices(lintRules()...),
		"namespace":       p.CompleteNamespaces,
		"context":         p.CompleteKubeconfig(func(c clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(c.Contexts)) }),
		"cluster":         p.CompleteKubeconfig(func(c clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(c.Clusters)) }),
		"user":            p.CompleteKubeconfig(func(c clientcmdapi.Config) []string { return slices.Sorted(maps.Keys(c.AuthInfos)) }),
	}
}

func choices(all ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(all, cobra.ShellCompDirectiveNoFileComp)
}

func lintRules() []string {
	var all []string
	for _, rule := range lint.Rules() {
		all = append(all, cobra.CompletionWithDesc(rule.ID, rule.Title))
	}
	return all
}

// complete completes the flags of a command and of those below it. Without it, shells offer
// the names of files.
func complete(cmd *cobra.Command, known map[string]cobra.CompletionFunc) {
	register := func(f *pflag.Flag) {
		switch of := known[f.Name]; {
		case slices.Contains(flagsWithFiles, f.Name):
		case of != nil:
			_ = cmd.RegisterFlagCompletionFunc(f.Name, of) // the flag exists
		default:
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions) // or the verb has its own
		}
	}
	cmd.Flags().VisitAll(register)
	cmd.PersistentFlags().VisitAll(register)
	if cmd.ValidArgsFunction == nil && cmd.ValidArgs == nil && cmd.Name() != "lint" {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	for _, below := range cmd.Commands() {
		complete(below, known)
	}
}
