// SPDX-License-Identifier: Apache-2.0

package background_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxrollouts/rollout-controller/internal/background"
)

// A queue ends when what is under way has ended. What waits is left.
func TestServeEndsWithTheLastCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		namespace := func(key string) string { return strings.Split(key, "/")[0] }
		queue := background.NewQueue(namespace, time.Second, time.Minute, clock.RealClock{})
		for _, key := range []string{"loud/1", "loud/2", "loud/3", "loud/4", "quiet/1"} {
			queue.Add(key)
		}
		ctx, cancel := context.WithCancel(t.Context())
		began := make(chan string, 5)
		go background.Serve(ctx, queue, func(ctx context.Context, key string) {
			began <- key
			<-ctx.Done()
		})
		synctest.Wait()
		cancel()
		synctest.Wait() // fails if a worker goes on
		got := []string{<-began, <-began, <-began}
		if slices.Sort(got); len(began) > 0 || !slices.Equal(got, []string{"loud/1", "loud/2", "quiet/1"}) {
			t.Errorf("%v have begun", got)
		}
	})
}

func TestWakerWakesOnceItsControllerRuns(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	shop := types.NamespacedName{Namespace: "shop", Name: "web"}
	var waker background.Waker
	waker.Wake(shop)
	if err := waker.Source().Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if queue.Len() != 0 {
		t.Error("it has woken before")
	}
	waker.Wake(shop)
	if next, _ := queue.Get(); next.NamespacedName != shop {
		t.Errorf("it wakes %v", next)
	}
}
