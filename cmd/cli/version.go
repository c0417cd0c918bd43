// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// version is set when a release is built.
var version = "dev"

func newVersion(p *program) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Say which version this is", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			p.out.Line("flux-rollout %s", version)
			return nil
		},
	}
}

// kubectlCompletion is for kubectl, which completes plugins by a second executable file
// (kubectl 1.26 and newer).
const kubectlCompletion = `#!/bin/sh
# Save this as an executable file kubectl_complete-rollouts on your PATH.
exec kubectl rollouts __complete "$@"
`

func newCompletion(p *program) *cobra.Command {
	return &cobra.Command{
		Use: "completion bash|zsh|fish|powershell|kubectl", Short: "Write a script that completes commands",
		Args: cobra.ExactArgs(1), ValidArgs: []string{"bash", "zsh", "fish", "powershell", "kubectl"},
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), p.out.Out
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(out)
			case "kubectl":
				_, err := fmt.Fprint(out, kubectlCompletion)
				return err
			}
			return fmt.Errorf("there is no completion for %q; choose bash, zsh, fish, powershell or kubectl", args[0])
		},
	}
}
