// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
)

// relistPause is the pause between two lists of a kind that were asked for. A tenant can
// ask for them by deleting objects.
const relistPause = time.Minute

// relister has all objects of a kind listed again when that is asked for. Informers cannot
// do that: they list again if a watch cannot go on from where the last one ended.
type relister struct {
	toolscache.ListerWatcherWithContext

	mu      sync.Mutex
	resting bool            // whether they were listed again not long ago
	asked   bool            // whether that was asked for since
	watch   watch.Interface // the one that is open
	ended   bool            // whether it was ended here
}

// listed returns the objects of a kind from a source, which can be asked to list them again.
func (t *trimmer) listed(from toolscache.ListerWatcher, example runtime.Object) toolscache.ListerWatcher {
	t.mu.Lock()
	defer t.mu.Unlock()
	again := &relister{ListerWatcherWithContext: toolscache.ToListerWatcherWithContext(from)}
	t.lists[reflect.TypeOf(example)] = again
	return toolscache.ToListWatcherWithWatchListSemantics(&toolscache.ListWatch{
		ListWithContextFunc: again.ListWithContext, WatchFuncWithContext: again.WatchWithContext,
	}, from)
}

// again has the objects of a kind listed again.
func (t *trimmer) again(kind reflect.Type) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if list := t.lists[kind]; list != nil {
		list.ask()
	}
}

// ask has the objects listed again soon.
func (r *relister) ask() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.resting {
		r.asked = true
		return
	}
	r.resting, r.ended = true, true
	if r.watch != nil {
		r.watch.Stop()
	}
	time.AfterFunc(relistPause, r.rested)
}

// rested lists again if that was asked for in the meantime.
func (r *relister) rested() {
	r.mu.Lock()
	asked := r.asked
	r.resting, r.asked = false, false
	r.mu.Unlock()
	if asked {
		r.ask()
	}
}

// WatchWithContext refuses to go on after a watch that was ended here.
func (r *relister) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		r.ended = false
		return nil, apierrors.NewResourceExpired("the objects are listed again")
	}
	opened, err := r.ListerWatcherWithContext.WatchWithContext(ctx, options)
	if err == nil {
		r.watch = opened
	}
	return opened, err
}
