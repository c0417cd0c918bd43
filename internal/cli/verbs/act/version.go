// SPDX-License-Identifier: Apache-2.0

package act

import (
	"errors"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/cli/show"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
)

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
