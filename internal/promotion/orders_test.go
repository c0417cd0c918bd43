// SPDX-License-Identifier: Apache-2.0

package promotion_test

import "github.com/fluxrollouts/rollout-controller/internal/promotion/releases"

var (
	byNumber     = releases.OrderSpec{Kind: releases.ByNumber}
	byAlphabet   = releases.OrderSpec{Kind: releases.ByAlphabet}
	byAppearance = releases.OrderSpec{Kind: releases.ByAppearance}

	// stamped tags look like main-3f2a-1700000000.
	stamped = releases.OrderSpec{Kind: releases.ByNumber, Pattern: `^main-[0-9a-f]+-(?P<ts>[0-9]+)$`, Extract: "$ts"}
	// numbered tags look like 1.4.0_17: OCI does not allow a plus sign.
	numbered = releases.OrderSpec{Kind: releases.BySemver, Range: "*", Pattern: `^(?P<v>.+)_(?P<b>\d+)$`, Extract: "$v+$b"}
)

// built tags have any build metadata after an underscore.
var built = releases.OrderSpec{Kind: releases.BySemver, Range: "*", Pattern: `^([^_]+)_(.+)$`, Extract: "$1+$2"}

func descending(spec releases.OrderSpec) releases.OrderSpec {
	spec.Descending = true
	return spec
}
