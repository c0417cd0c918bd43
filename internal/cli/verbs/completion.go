// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
)

// kubectlCompletion is for kubectl, which completes plugins by a second executable file
// (kubectl 1.26 and newer).
const kubectlCompletion = `#!/bin/sh
# Save this as an executable file %[1]s on your PATH.
exec %[2]s __complete "$@"
`

func newCompletion(p *program.Program) *cobra.Command {
	return &cobra.Command{
		Use: "completion bash|zsh|fish|powershell|kubectl", Short: "Write a script that completes commands",
		Long: `Write a script that completes commands of ` + fileOf(p.Called) + ` in a shell.

kubectl completes its plugins by a second file on the PATH, which "kubectl" writes.
flux needs no script: it asks its plugins.`,
		Args: cobra.ExactArgs(1), ValidArgs: []string{"bash", "zsh", "fish", "powershell", "kubectl"},
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeCompletion(cmd.Root(), args[0], p.Called, p.Out.Out)
		},
	}
}

func writeCompletion(root *cobra.Command, shell, called string, out io.Writer) error {
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(out, true)
	case "zsh":
		return root.GenZshCompletion(out)
	case "fish":
		return root.GenFishCompletion(out, true)
	case "powershell":
		return root.GenPowerShellCompletionWithDesc(out)
	case "kubectl":
		return writeForKubectl(called, out)
	}
	return fmt.Errorf("there is no completion for %q; choose bash, zsh, fish, powershell or kubectl", shell)
}

// writeForKubectl writes the file that kubectl looks for. If kubectl did not call the
// program, it is the one for kubectl rollouts.
func writeForKubectl(called string, out io.Writer) error {
	plugin, is := strings.CutPrefix(called, "kubectl ")
	if !is {
		plugin = "rollouts"
	}
	_, err := fmt.Fprintf(out, kubectlCompletion, completePrefix+pluginFile(plugin), "kubectl "+plugin)
	return err
}
