// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"

	"github.com/spf13/cobra"
)

// OneName accepts the name of one Rollout, and so many arguments after it.
func OneName(more int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1+more {
			return fmt.Errorf("expected %s after %q, got %s; see: %s --help", names, cmd.CommandPath(), Arguments(args), cmd.CommandPath())
		}
		return nil
	}
}

// Arguments returns the arguments of a call for a message.
func Arguments(args []string) string {
	switch len(args) {
	case 0:
		return "nothing"
	case 1:
		return fmt.Sprintf("only %q", args[0])
	}
	return fmt.Sprintf("%q", args)
}
