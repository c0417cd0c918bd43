// SPDX-License-Identifier: Apache-2.0

package fair_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/internal/fair"
)

// workers takes items from the queue of a controller.
type workers struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	begun chan reconcile.Request
	ended chan struct{} // receives a value for each worker that has ended
}

func newWorkers(n int) *workers {
	return &workers{
		fair.NewQueue(n)("test", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()),
		make(chan reconcile.Request, n), make(chan struct{}, n),
	}
}

// take lets a free worker take an item.
func (w *workers) take() {
	go func() {
		if item, end := w.Get(); !end {
			w.begun <- item
			return
		}
		w.ended <- struct{}{}
	}()
}

// end ends an item. Its worker takes the next one.
func (w *workers) end(item reconcile.Request) {
	w.Done(item)
	w.take()
}

// started waits until nothing moves, and returns what has begun.
func (w *workers) started() (begun []reconcile.Request) {
	synctest.Wait()
	for {
		select {
		case item := <-w.begun:
			begun = append(begun, item)
		default:
			return begun
		}
	}
}

func request(namespace string, n int) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: fmt.Sprint(n)}}
}

func namespacesOf(items []reconcile.Request) (all []string) {
	for _, item := range items {
		all = append(all, item.Namespace)
	}
	slices.Sort(all)
	return all
}

// If one namespace has a thousand requests and another has one, that one is next.
func TestControllerTurnsToEachNamespace(t *testing.T) {
	queue := newWorkers(2)
	defer queue.ShutDown()
	for n := range 1000 {
		queue.Add(request("loud", n))
	}
	queue.Add(request("quiet", 0))
	queue.Add(request("quiet", 0)) // counts once
	queue.AddAfter(request("quiet", 1), time.Nanosecond)
	var order []string
	for range 2 {
		next, _ := queue.Get()
		order = append(order, next.Namespace)
		queue.Done(next)
	}
	if want := []string{"loud", "quiet"}; !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
}

func TestWorkersAreSharedByNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := newWorkers(10)
		for n := range 100 {
			queue.Add(request("loud", n))
		}
		for range 10 {
			queue.take()
		}
		first := queue.started()
		if len(first) != 5 || queue.Len() != 95 {
			t.Errorf("%d of 100 have begun, and %d wait", len(first), queue.Len())
		}
		queue.Add(request("quiet", 0))
		if got := namespacesOf(queue.started()); !slices.Equal(got, []string{"quiet"}) {
			t.Errorf("%v has begun", got)
		}
		queue.Add(first[0]) // an item that is under way waits for its end, and then for a place
		queue.end(first[0])
		if got := queue.started(); len(got) != 1 || got[0] != request("loud", 5) {
			t.Errorf("%v has begun", got)
		}
		queue.ShutDown()
		synctest.Wait()
		if len(queue.ended) != 4 {
			t.Errorf("%d workers have ended, and 6 of 10 have an item", len(queue.ended))
		}
	})
}

// TestWorkersAreNeverAllOfOneNamespace checks for any order of events that a namespace
// without an item under way waits only if all workers are busy, and that nothing is lost.
func TestWorkersAreNeverAllOfOneNamespace(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			most := 1 + random.IntN(6)
			queue := newWorkers(most)
			defer queue.ShutDown()
			var running []reconcile.Request
			waiting := map[reconcile.Request]bool{}
			began := func() {
				for _, item := range queue.started() {
					running = append(running, item)
					delete(waiting, item)
				}
				for item := range waiting {
					if len(running) < most && !slices.Contains(namespacesOf(running), item.Namespace) {
						t.Fatalf("%s waits, while %v are under way with %d workers", item, namespacesOf(running), most)
					}
				}
			}
			end := func() {
				i := random.IntN(len(running))
				item := running[i]
				running = slices.Delete(running, i, i+1)
				queue.end(item)
				began()
			}
			for range most {
				queue.take()
			}
			for n := range 300 {
				if random.IntN(5) > 1 || len(running) == 0 {
					item := request(fmt.Sprint(min(random.IntN(4), random.IntN(4))), n)
					waiting[item] = true
					queue.Add(item)
					began()
				} else {
					end()
				}
			}
			for len(running) > 0 {
				end()
			}
			if len(waiting) > 0 || queue.Len() > 0 {
				t.Errorf("%d never began, and %d wait", len(waiting), queue.Len())
			}
		})
	}
}
