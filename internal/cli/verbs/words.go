// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
)

// aliases are the words of kubectl and of Argo Rollouts for verbs.
var aliases = map[string][]string{"rollback": {"undo"}, "suspend": {"pause"}}

// acceptKinds lets users name the kind of a Rollout, as -o name and kubectl do.
func acceptKinds(verb *cobra.Command) {
	if words := strings.Fields(verb.Use); verb.RunE == nil || !slices.ContainsFunc(words, func(word string) bool { return strings.Trim(word, "[].") == "NAME" }) {
		return
	}
	check, run := verb.Args, verb.RunE
	if check != nil {
		verb.Args = func(cmd *cobra.Command, args []string) error { return check(cmd, program.PlainNames(args)) }
	}
	verb.RunE = func(cmd *cobra.Command, args []string) error { return run(cmd, program.PlainNames(args)) }
}

// unknownVerb is an error that names the verbs that were probably meant.
func unknownVerb(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("there is no verb %q; see: %s --help", args[0], root.CommandPath())
	for _, word := range similarVerbs(root, args[0]) {
		text += fmt.Sprintf("\n%s %s", root.CommandPath(), word)
	}
	return errors.New(text)
}

// similarVerbs returns verbs and their other names. Cobra alone does not suggest the latter.
func similarVerbs(root *cobra.Command, typed string) []string {
	words := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, verb := range root.Commands() {
		if verb.IsAvailableCommand() {
			for _, word := range append([]string{verb.Name()}, verb.Aliases...) {
				words.AddCommand(&cobra.Command{Use: word, Run: func(*cobra.Command, []string) {}})
			}
		}
	}
	return words.SuggestionsFor(typed)
}
