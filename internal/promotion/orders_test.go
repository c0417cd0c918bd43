// SPDX-License-Identifier: Apache-2.0

package promotion_test

import "github.com/fluxrollouts/rollout-controller/internal/promotion/releases"

var (
	byNumber     = releases.OrderSpec{Kind: releases.ByNumber}
	byAlphabet   = releases.OrderSpec{Kind: releases.ByAlphabet}
	byAppearance = releases.OrderSpec{Kind: releases.ByAppearance}
	// numbered tags look like 1.4.0_17: OCI does not allow a plus sign.
	numbered = releases.OrderSpec{Kind: releases.BySemver, Range: "*", Pattern: `^(?P<v>.+)_(?P<b>\d+)$`, Extract: "$v+$b"}
)

func descending(spec releases.OrderSpec) releases.OrderSpec {
	spec.Descending = true
	return spec
}
