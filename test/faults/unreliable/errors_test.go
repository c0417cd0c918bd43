// SPDX-License-Identifier: Apache-2.0

package unreliable

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fluxrollouts/rollout-controller/test/faults/report"
	"github.com/fluxrollouts/rollout-controller/test/faults/wire"
)

const (
	// seedVariable is the environment variable with a seed, which repeats the faults of
	// an earlier run.
	seedVariable = "FAULT_SEED"
	// roundsVariable is the environment variable that makes the run longer.
	roundsVariable = "FAULT_ROUNDS"
	// share is the share of the requests that fail.
	share = 1. / 3
	// most is how many requests a promotion may need on average, failed requests
	// included.
	most = 60
)

func TestThirdOfAllRequestsMayFail(t *testing.T) {
	reported := report.Begin(t, "of all requests, reads and writes, a third is answered 409, 429, 500, 503, times out, is dropped, or loses its answer",
		"the same history; each target is written once for each release; no event is repeated; no hot loop")
	t.Parallel()
	f := newFleet(t, 10)
	chance := newChance(t)
	before := len(f.wire.Log())
	f.wire.Inject(chance.fault)
	for range number(t, roundsVariable, 4) {
		f.round()
	}
	f.wire.Inject(nil)

	found, asked, faults := f.holds(), len(f.wire.Log())-before, f.wire.Faults()
	perPromotion := float64(asked) / float64(f.promotions())
	if perPromotion > most {
		t.Errorf("%d requests were made for %d promotions", asked, f.promotions())
	}
	reported.Saw(faults, "%d Rollouts, %d releases: %d promotions, none twice, no target written twice; %d requests, %.0f for each promotion; "+
		"%d restarts of the controller", len(f.apps), len(f.released), found.Promotions, asked, perPromotion, f.restarter.Ended())
}

// chance decides which requests fail, and how. The decision depends only on the seed, on
// the request and on how often it was made before. So a seed repeats the faults,
// independent of other events at the same time.
type chance struct {
	seed uint64

	mu    sync.Mutex
	asked map[string]uint64
}

func newChance(t *testing.T) *chance {
	t.Helper()
	seed := number(t, seedVariable, int(time.Now().UnixNano()))
	t.Logf("%s=%d", seedVariable, seed)
	return &chance{seed: uint64(seed), asked: map[string]uint64{}}
}

// number reads a number from the environment.
func number(t *testing.T, variable string, otherwise int) int {
	t.Helper()
	given := os.Getenv(variable)
	if given == "" {
		return otherwise
	}
	n, err := strconv.Atoi(given)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

func (c *chance) fault(r wire.Request) wire.Fault {
	random := c.random(r)
	if random.Float64() >= share {
		return wire.Fault{}
	}
	faults := []wire.Fault{
		wire.Refuse(http.StatusTooManyRequests, time.Second),
		wire.Refuse(http.StatusInternalServerError, 0),
		wire.Refuse(http.StatusServiceUnavailable, 0),
		wire.Hold(300 * time.Millisecond),
		wire.Drop(),
		wire.Lose(),
	}
	if r.Write > 0 {
		faults = append(faults, wire.Refuse(http.StatusConflict, 0))
	}
	return faults[random.IntN(len(faults))]
}

func (c *chance) random(r wire.Request) *rand.Rand {
	what := r.String()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[what]++
	hash := fnv.New64a()
	_, _ = fmt.Fprint(hash, what)
	_ = binary.Write(hash, binary.LittleEndian, c.asked[what])
	return rand.New(rand.NewPCG(c.seed, hash.Sum64()))
}
