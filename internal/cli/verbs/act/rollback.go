// SPDX-License-Identifier: Apache-2.0

package act

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/request"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
)

// NewRollback returns the verb rollback.
func NewRollback(p *program.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rollback NAME [VERSION|ID]", Short: "Pin the version that succeeded here before",
		Long: `Pin the newest version that succeeded here and is older than the current one. The
history has it with your name and your reason, and nothing newer goes out until you unpin.

It never goes forward: versions that were rolled back before are left out. If the current
version was rolled back to, say how far back to go: a version of the history, or the
number of a promotion.`,
		Example: fmt.Sprintf(`  %[1]s rollback shop -m "1.4.2 answers with 502"
  %[1]s rollback shop 38 -m "the last one before the migration"`, p.Called),
	}
	c := newChanging(p, cmd)
	c.waits(cmd)
	program.TakesVersion(cmd, &c.tag, "a version of the history, or the number of a promotion (38 or #38)", "to")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if c.why == "" {
			return errors.New(`say why you roll back, with -m "..."`)
		}
		return c.run(cmd.Context(), args[0], func(v program.View) (request.Request, error) {
			tag, err := c.before(v)
			if err != nil {
				return request.Request{}, err
			}
			return c.pin(v, tag)
		})
	}
	return cmd
}

// promotionsOf returns the history of a Rollout in the order of its policy.
func promotionsOf(v program.View) request.Promotions {
	return request.Promotions{History: v.Rollout.Status.History, Ledger: v.Decision.Ledger, Order: v.Policy.Order}
}

// before returns the version to roll back to: the one that was named, or the newest one that
// is older than the current one and succeeded.
func (c *changing) before(v program.View) (string, error) {
	current := v.Rollout.Current()
	if current == nil {
		return "", program.Refuse("nothing is deployed yet")
	}
	if c.tag != "" {
		if entry := promotionsOf(v).Named(c.tag); entry != nil {
			return entry.Version.Tag, nil
		}
		return "", c.choose(v, "the history has no earlier promotion "+c.tag)
	}
	to, left := promotionsOf(v).Earlier()
	switch {
	case left != nil:
		return "", c.choose(v, fmt.Sprintf("%s runs because %s%s was rolled back already: say how far back to go",
			current.Version.Tag, left.Version.Tag, idOf(left)))
	case to == nil:
		return "", c.choose(v, fmt.Sprintf("no version before %s has succeeded here, as far as the history goes back", current.Version.Tag))
	}
	c.Err.Sentence(show.Do, "%s%s is the newest version before %s that succeeded here", to.Version.Tag, idOf(to), current.Version.Tag)
	return to.Version.Tag, nil
}

// idOf returns the number of a promotion, for a message.
func idOf(entry *v1alpha1.DeploymentHistoryEntry) string {
	if entry.ID == nil {
		return ""
	}
	return fmt.Sprintf(" (#%d)", *entry.ID)
}

// choose refuses a rollback, and lists the versions that it can go to.
func (c *changing) choose(v program.View, why string) error {
	lines, seen := []string{why}, map[string]bool{v.Rollout.Current().Version.Tag: true}
	for i := range v.Rollout.Status.History {
		entry := &v.Rollout.Status.History[i]
		if tag := entry.Version.Tag; !seen[tag] {
			seen[tag] = true
			lines = append(lines, c.CommandLine(v.Rollout.Namespace, "rollback", v.Rollout.Name, tag, "-m", "")+"   # "+string(entry.State())+idOf(entry))
		}
	}
	return program.Refuse("%s", strings.Join(lines, "\n"))
}
