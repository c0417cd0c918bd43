// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// precedence is the complete policy of what happens next. The first step that applies
// decides.
var precedence = []func(Input, known) (choice, bool){
	chosenManually, // by a user
	adopted,        // the history is older than the targets
	moved,          // Flux has deployed content without a request
	retried,        // the failed promotion, by a user
	begun,          // the history is empty
	judged,         // a promotion runs
	rolledBack,     // a promotion has failed
	promotedNext,   // otherwise
}

// next returns what happens next. A step that does not apply may do so later.
func next(in Input, k known) choice {
	var at time.Time
	for _, step := range precedence {
		c, ok := step(in, k)
		if at = verdict.Earlier(at, c.at); ok {
			supersede(c.superseded, c.Release.Tag)
			c.Action, c.at = cmp.Or(c.Action, Nothing), at
			return c
		}
	}
	return choice{Outcome: Outcome{Action: Nothing}, at: at}
}

// supersede holds the eligible ones of the candidates, because a newer one is promoted.
func supersede(candidates []Verdict, promoted string) {
	reason := verdict.Hold{Reason: v1alpha1.SupersededReason, Message: promoted + " is newer and eligible"}
	for i := range candidates {
		if candidates[i].Eligible() {
			candidates[i].Holds = []verdict.Hold{reason}
		}
	}
}
