// SPDX-License-Identifier: Apache-2.0

package fair_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fluxrollouts/rollout-controller/internal/fair"
)

func TestNamespacesTakeTurns(t *testing.T) {
	turns := &fair.Turns[string]{}
	for n := range 5 {
		turns.Push("loud", fmt.Sprintf("loud-%d", n))
	}
	turns.Push("quiet", "quiet-0")
	turns.Push("other", "other-0")
	first := pop(t, turns)
	turns.Push("quiet", "quiet-1")
	turns.PushNext("loud", first)
	if dropped := turns.DropFromLongest(); dropped != "loud-0" {
		t.Errorf("%s is dropped", dropped)
	}
	var order []string
	for turns.Len() > 0 {
		order = append(order, pop(t, turns))
	}
	want := []string{"loud-1", "quiet-0", "other-0", "loud-2", "quiet-1", "loud-3", "loud-4"}
	if !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
	if item, ok := turns.Pop(); ok {
		t.Errorf("%q was still there", item)
	}
}

func pop(t *testing.T, turns *fair.Turns[string]) string {
	t.Helper()
	item, ok := turns.Pop()
	if !ok {
		t.Fatal("nothing waits")
	}
	return item
}

// TestWhoeverWaitsIsTheNextButOne checks, for any order of events, that a namespace waits
// for at most as many items as there are other namespaces, that nothing is lost, and that
// the items of a namespace keep their order.
func TestWhoeverWaitsIsTheNextButOne(t *testing.T) {
	const namespaces = 4
	for range 200 {
		turns, sent, got := &fair.Turns[[2]int]{}, [namespaces]int{}, [namespaces]int{}
		since := [namespaces]int{} // how many items of other namespaces went while it waited
		for range 500 {
			of := rand.IntN(namespaces)
			if of = min(of, rand.IntN(namespaces)); rand.IntN(2) == 0 {
				turns.Push(fmt.Sprint(of), [2]int{of, sent[of]})
				sent[of]++
				continue
			}
			item, ok := turns.Pop()
			if !ok {
				continue
			}
			if item[1] != got[item[0]] {
				t.Fatalf("%v came, want the %dth", item, got[item[0]])
			}
			got[item[0]]++
			for other := range since {
				since[other]++
				if other == item[0] || got[other] == sent[other] {
					since[other] = 0
				}
				if since[other] >= namespaces {
					t.Fatalf("namespace %d waits while %d others go", other, since[other])
				}
			}
		}
	}
}
