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

// TakesVersion lets a verb about one Rollout have a version as the second argument, or by
// --version, and by old names of that flag.
func TakesVersion(cmd *cobra.Command, tag *string, usage string, old ...string) {
	for _, name := range append([]string{"version"}, old...) {
		cmd.Flags().StringVar(tag, name, "", usage)
		cmd.Flags().Lookup(name).Hidden = name != "version"
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 2 {
			if *tag != "" && *tag != args[1] {
				return fmt.Errorf("two versions are given: %s and %s", args[1], *tag)
			}
			*tag = args[1]
		}
		return Named(1, 2, "the name of a Rollout, and perhaps a version")(cmd, args)
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
