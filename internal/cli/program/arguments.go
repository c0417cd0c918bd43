// SPDX-License-Identifier: Apache-2.0

package program

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// kindNames is how kubectl and -o name write the kind Rollout.
var kindNames = []string{"rollout", "rollouts", "rollout.kuberik.com", "rollouts.kuberik.com"}

// PlainNames returns the names of Rollouts without their kind: users write rollout/shop, or
// "rollout shop". A Rollout that is called rollout is rollout/rollout.
func PlainNames(args []string) []string {
	if len(args) > 1 && slices.Contains(kindNames, args[0]) {
		args = args[1:]
	}
	all := slices.Clone(args)
	for i, arg := range args {
		if kind, name, ok := strings.Cut(arg, "/"); ok && slices.Contains(kindNames, kind) {
			all[i] = name
		}
	}
	return all
}

// OneName accepts the name of one Rollout, and so many arguments after it.
func OneName(more int, names string) cobra.PositionalArgs { return Named(1+more, 1+more, names) }

// Named accepts from least to most arguments.
func Named(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
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
