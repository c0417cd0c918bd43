// SPDX-License-Identifier: Apache-2.0

package act

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

// NewPin returns the verb pin.
func NewPin(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "pin NAME VERSION", Short: "Deploy a version, and nothing else until you unpin",
		Long: `Deploy a version, and nothing else until you unpin.
While this command line owns the pin, kuberik's dashboard disables its buttons for
versions of the Rollout; unpin gives them back.`,
		Example: fmt.Sprintf(`  %[1]s pin shop 1.3.1 -m "1.4.2 answers with 502"`, p.Called),
	}
	c := newChanging(p, cmd)
	cmd.Args = program.OneName(1, "the name of a Rollout and a version")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.run(cmd.Context(), args[0], func(v program.View) (request.Request, error) { return c.pin(v, args[1]) })
	}
	return cmd
}

// pin warns of a version that nobody has seen: Flux would wait for it.
func (c *changing) pin(v program.View, tag string) (request.Request, error) {
	switch standing := promotion.StandingOf(v.Input, v.Decision, tag); standing.Position {
	case promotion.NoTag:
		return request.Request{}, errors.New(standing.Message)
	case promotion.NotSeen, promotion.Withdrawn:
		c.Err.Sentence(show.Warns, "%s", standing.Message)
	case promotion.Deployed, promotion.SameRelease, promotion.Candidate, promotion.NotAdmitted, promotion.Older:
	}
	return request.Pin(tag), nil
}

// NewUnpin returns the verb unpin.
func NewUnpin(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{Use: "unpin NAME", Short: "End a pin: newer releases go out again"}
	c := newChanging(p, cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.run(cmd.Context(), args[0], func(v program.View) (request.Request, error) {
			if v.Rollout.Pinned() == "" {
				return request.Request{}, program.Refuse("no version is pinned")
			}
			return request.Unpin(), nil
		})
	}
	return cmd
}

// NewRollback returns the verb rollback.
func NewRollback(p *program.Program) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "rollback NAME", Short: "Pin the version that succeeded here before",
		Long: `Pin the newest version that succeeded here before the current one. The history has
it with your name and your reason, and nothing newer goes out until you unpin.`,
		Example: fmt.Sprintf(`  %[1]s rollback shop -m "1.4.2 answers with 502"
  %[1]s rollback shop --to '#38' -m "the last one before the migration"`, p.Called),
	}
	c := newChanging(p, cmd)
	cmd.Flags().StringVar(&to, "to", "", "the version, or the number of a promotion (#38)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if c.why == "" {
			return errors.New(`say why you roll back, with -m "..."`)
		}
		return c.run(cmd.Context(), args[0], func(v program.View) (request.Request, error) {
			tag, err := before(v.Rollout, to)
			if err != nil {
				return request.Request{}, err
			}
			return c.pin(v, tag)
		})
	}
	return cmd
}

// before returns the version to roll back to: the one that was named, or the newest one
// that succeeded and is not the current one.
func before(rollout *v1alpha1.Rollout, to string) (string, error) {
	current := rollout.Current()
	if current == nil {
		return "", program.Refuse("nothing is deployed yet")
	}
	id, err := strconv.ParseInt(strings.TrimPrefix(to, "#"), 10, 64)
	byID := err == nil && strings.HasPrefix(to, "#")
	for _, entry := range rollout.Status.History[1:] {
		switch {
		case byID && entry.ID != nil && *entry.ID == id,
			to == "" && entry.State() == v1alpha1.BakeSucceeded && entry.Version.Tag != current.Version.Tag:
			return entry.Version.Tag, nil
		}
	}
	switch {
	case byID:
		return "", program.Refuse("the history has no earlier promotion %s", to)
	case to == "":
		return "", program.Refuse("no other version has succeeded here, as far as the history goes back")
	}
	return to, nil
}
