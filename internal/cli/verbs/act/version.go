// SPDX-License-Identifier: Apache-2.0

package act

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// takesVersion lets a verb about one release have its version as the second argument, or by
// --version, and by old names of that flag.
func (c *changing) takesVersion(cmd *cobra.Command, usage string, old ...string) {
	for _, name := range append([]string{"version"}, old...) {
		cmd.Flags().StringVar(&c.tag, name, "", usage)
		cmd.Flags().Lookup(name).Hidden = name != "version"
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 2 {
			if c.tag != "" && c.tag != args[1] {
				return fmt.Errorf("two versions are given: %s and %s", args[1], c.tag)
			}
			c.tag = args[1]
		}
		return program.Named(1, 2, "the name of a Rollout, and perhaps a version")(cmd, args)
	}
}

// warns says what is special about a version that a user has named: Flux waits for one that
// nobody has seen.
func (c *changing) warns(v program.View, tag string) error {
	switch standing := promotion.StandingOf(v.Input, v.Decision, tag); standing.Position {
	case promotion.NoTag:
		return errors.New(standing.Message)
	case promotion.NotSeen, promotion.Withdrawn, promotion.NotAdmitted:
		c.Err.Sentence(show.Warns, "%s", standing.Message)
	case promotion.Deployed, promotion.SameRelease, promotion.Candidate, promotion.Older:
	}
	return nil
}
