// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"

	"github.com/spf13/cobra"
)

// oneName accepts the name of one Rollout, and so many arguments after it.
func oneName(more int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1+more {
			return fmt.Errorf("expected %s after %q, got %s; see: %s --help", names, cmd.CommandPath(), arguments(args), cmd.CommandPath())
		}
		return nil
	}
}

func arguments(args []string) string {
	switch len(args) {
	case 0:
		return "nothing"
	case 1:
		return fmt.Sprintf("only %q", args[0])
	}
	return fmt.Sprintf("%q", args)
}
