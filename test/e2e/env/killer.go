// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// seedVariable is the environment variable that repeats the moments of an earlier run, as
// far as the timing of the machine allows it.
const seedVariable = "CRASH_SEED"

// Random returns a generator whose seed is the environment variable CRASH_SEED, or else
// the time. The log of the test contains the seed.
func Random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if given := os.Getenv(seedVariable); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	t.Logf("%s=%d", seedVariable, seed)
	return rand.New(rand.NewPCG(seed, seed))
}

// Killer kills the controller repeatedly, and starts it again each time.
type Killer struct {
	// Look inspects the state that a killed controller has left. It may be nil.
	Look func(context.Context) error

	plane  *Plane
	random *rand.Rand
	client client.WithWatch
	kinds  []client.ObjectList
}

// NewKiller returns a killer that prefers the moments after the controller has written an
// object of some kinds, because most can be lost then.
func NewKiller(plane *Plane, random *rand.Rand, kinds ...client.ObjectList) (*Killer, error) {
	c, err := client.NewWithWatch(plane.RESTConfig(), client.Options{Scheme: plane.Client().Scheme()})
	return &Killer{plane: plane, random: random, client: c, kinds: kinds}, err
}

// Kill kills the controller a number of times. Every other kill is at any moment of its
// life, including its start. The others are right after a write.
func (k *Killer) Kill(ctx context.Context, times int) error {
	for n := range times {
		if n%2 == 0 {
			k.wait(4 * time.Second)
		} else {
			if err := k.awaitWrite(ctx, k.kinds[n/2%len(k.kinds)]); err != nil {
				return err
			}
			k.wait(20 * time.Millisecond)
		}
		if err := k.restart(ctx); err != nil {
			return fmt.Errorf("kill number %d: %w", n+1, err)
		}
	}
	return nil
}

// wait waits for a random time that is shorter than the given one.
func (k *Killer) wait(most time.Duration) { time.Sleep(time.Duration(k.random.Int64N(int64(most)))) }

// longestLife is how long a controller lives that changes nothing. On a busy machine, it
// needs a part of that to start: if all lives were shorter, it would never do anything.
const longestLife = 30 * time.Second

// awaitWrite waits until an object of a kind changes.
func (k *Killer) awaitWrite(ctx context.Context, kind client.ObjectList) error {
	ctx, cancel := context.WithTimeout(ctx, longestLife)
	defer cancel()
	list := kind.DeepCopyObject().(client.ObjectList)
	if err := k.client.List(ctx, list); err != nil {
		return fmt.Errorf("list %T: %w", kind, err)
	}
	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}
	watch, err := k.client.Watch(ctx, list, from)
	if err != nil {
		return fmt.Errorf("watch %T: %w", kind, err)
	}
	defer watch.Stop()
	select {
	case <-watch.ResultChan():
	case <-ctx.Done():
	}
	return nil
}

func (k *Killer) restart(ctx context.Context) error {
	if err := k.plane.Controller.Kill(); err != nil {
		return err
	}
	if k.Look != nil {
		if err := k.Look(ctx); err != nil {
			return err
		}
	}
	return k.plane.Controller.Start(ctx)
}
