// SPDX-License-Identifier: Apache-2.0

package act

import (
	"errors"
	"testing"

	"github.com/fluxrollouts/rollout-controller/internal/cli/program"
	"github.com/fluxrollouts/rollout-controller/internal/gather"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/test/fixture"
)

// What could not be read is held now, and may go once the freeze is over and it is read.
func TestUnfreezeAsksIfItDoesNotKnow(t *testing.T) {
	rollout := fixture.MakeRollout("shop").Obj()
	blind := program.View{Snapshot: gather.Snapshot{Input: promotion.Input{Rollout: rollout}, Err: errors.New("forbidden")}}
	effect, goesOut := changeOf(blind, blind)
	want := "shop-prod/shop: a release may go out; not everything could be read: forbidden"
	if effect != want || !goesOut {
		t.Errorf("it says %q, and goes out is %t", effect, goesOut)
	}
}
