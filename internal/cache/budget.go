// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"hash/maphash"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxrollouts/rollout-controller/internal/unreadable"
)

// uncounted is how many bytes of each object do not count for the budget of its namespace.
// Most objects need less, and are never refused.
const uncounted = 2 << 10

// budget limits how many bytes the objects of a namespace take together. One that does not
// fit is kept in part, as one that is too large. The zero value has no limit.
type budget struct {
	most int
	// again has the objects of a kind listed again. One that did not fit may fit now.
	again func(kind reflect.Type)

	mu sync.Mutex
	of map[string]*account // by namespace
}

// account is what a namespace has in the caches, by the hash of an object's UID: tens of
// thousands of objects may count.
type account struct {
	total   int
	sizes   map[uint64]int32
	refused map[uint64]refusal
}

// refusal is an object that did not fit.
type refusal struct {
	kind reflect.Type
	size int
}

var seed = maphash.MakeSeed()

func hashOf(uid types.UID) uint64 { return maphash.String(seed, string(uid)) }

// admit counts an object of a size. If it does not fit, it is cut and marked. One that is
// marked has been cut, and fits.
func (t *trimmer) admit(o client.Object, size int) {
	if t.budget.most == 0 || o.GetNamespace() == "" {
		return
	}
	if t.budget.count(o, size, unreadable.Of(o) != nil) {
		return
	}
	unreadable.MarkWith(o, fmt.Sprintf("it would take %d KiB of memory, and all objects of its namespace together have %d", size>>10, t.budget.most>>10),
		"delete objects of the namespace, or make them smaller")
	cut := cutter{most: fewElements}
	cut.value(reflect.ValueOf(o))
	o.SetResourceVersion("") // informers do not announce an object whose version is the same
	t.budget.count(o, t.sizeOf(o), true)
}

// count reports whether an object fits. One that has been cut always does.
func (b *budget) count(o client.Object, size int, cut bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	id, of := hashOf(o.GetUID()), b.account(o.GetNamespace())
	defer b.settle(o.GetNamespace(), of, of.total)
	of.total -= int(of.sizes[id])
	delete(of.sizes, id)
	if !cut {
		delete(of.refused, id)
		if of.total+size > b.most && size > uncounted {
			of.refused[id] = refusal{reflect.TypeOf(o), size}
			return false
		}
	}
	if size > uncounted {
		of.total, of.sizes[id] = of.total+size, int32(size)
	}
	return true
}

func (b *budget) account(namespace string) *account {
	of := b.of[namespace]
	if of == nil {
		of = &account{sizes: map[uint64]int32{}, refused: map[uint64]refusal{}}
		if b.of == nil {
			b.of = map[string]*account{}
		}
		b.of[namespace] = of
	}
	return of
}

// forget no longer counts an object that is gone.
func (b *budget) forget(o client.Object) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id, of := hashOf(o.GetUID()), b.account(o.GetNamespace())
	defer b.settle(o.GetNamespace(), of, of.total)
	of.total -= int(of.sizes[id])
	delete(of.sizes, id)
	delete(of.refused, id)
}

// settle has kinds listed again of which a refused object fits now that the total is less
// than before. A namespace may have any number of refused objects.
func (b *budget) settle(namespace string, of *account, before int) {
	if len(of.sizes)+len(of.refused) == 0 {
		delete(b.of, namespace)
	}
	if of.total >= before {
		return
	}
	for _, refused := range of.refused {
		if of.total+refused.size <= b.most {
			b.again(refused.kind)
		}
	}
}

// follow forgets what is deleted.
func (b *budget) follow(informer toolscache.SharedIndexInformer) {
	if b.most == 0 {
		return
	}
	_, _ = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(gone any) { // fails only once the informer has stopped
		if unknown, ok := gone.(toolscache.DeletedFinalStateUnknown); ok {
			gone = unknown.Obj
		}
		if object, ok := gone.(client.Object); ok {
			b.forget(object)
		}
	}})
}
