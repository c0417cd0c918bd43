// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// shownEverywhere are the flags of the connection that the help of each verb shows.
var shownEverywhere = []string{"namespace", "context"}

func newOptions() *cobra.Command {
	return &cobra.Command{
		Use: "options", Short: "List the flags of the connection, which all verbs have", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), cmd.Root().PersistentFlags().FlagUsages())
			return err
		},
	}
}

// withoutConnection leaves most flags of the connection out of a help, as kubectl does.
func withoutConnection(help func(*cobra.Command, []string)) func(*cobra.Command, []string) {
	return func(cmd *cobra.Command, args []string) {
		cmd.Root().PersistentFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(shownEverywhere, f.Name) })
		help(cmd, args)
		fmt.Fprintf(cmd.OutOrStdout(), "\nUse \"%s options\" for the flags of the connection, which all verbs have.\n", cmd.Root().CommandPath())
	}
}
