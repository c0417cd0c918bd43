// SPDX-License-Identifier: Apache-2.0

package simulation

import "github.com/fluxrollouts/rollout-controller/internal/promotion"

// RunAsking is Run with another engine.
func RunAsking(engine func(promotion.Input) promotion.Decision, in promotion.Input, a Assumptions) (Result, error) {
	w := newWorld(in, a)
	w.decide = engine
	return w.run(a.Until)
}
