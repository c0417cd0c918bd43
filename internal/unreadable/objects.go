// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects knows which objects of its caches cannot be read, and tells of them.
type Objects struct {
	// Report is called for each such object once, and again if it cannot be read for another
	// cause. It must not wait.
	Report func(object client.Object, err error)

	mu      sync.Mutex
	telling bool
	known   map[string]map[client.ObjectKey]client.Object // by kind
}

// Start tells of all that is known, and from then on of what comes. Of several replicas
// only one is to.
func (o *Objects) Start(ctx context.Context) error {
	o.mu.Lock()
	o.telling = true
	var all []client.Object
	for _, objects := range o.known {
		for _, object := range objects {
			all = append(all, object)
		}
	}
	o.mu.Unlock()
	for _, object := range all {
		o.Report(object, Of(object))
	}
	<-ctx.Done()
	return nil
}

// Count returns how many objects of each kind cannot be read. Kinds of which all can are
// left out.
func (o *Objects) Count() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	counts := map[string]int{}
	for kind, objects := range o.known {
		if len(objects) > 0 {
			counts[kind] = len(objects)
		}
	}
	return counts
}

// follow keeps count of what an informer sees.
func (o *Objects) follow(informer toolscache.SharedIndexInformer) {
	see := func(found any) {
		if object, ok := found.(client.Object); ok {
			o.see(object, Of(object))
		}
	}
	_, _ = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{ // fails only once the informer has stopped
		AddFunc:    see,
		UpdateFunc: func(_, found any) { see(found) },
		DeleteFunc: func(gone any) {
			if unknown, ok := gone.(toolscache.DeletedFinalStateUnknown); ok {
				gone = unknown.Obj
			}
			if object, ok := gone.(client.Object); ok {
				o.see(object, nil)
			}
		},
	})
}

func (o *Objects) see(object client.Object, err error) {
	if o.note(object, err) {
		o.Report(object, err)
	}
}

// note remembers what cannot be read, and reports whether it is to be told now.
func (o *Objects) note(object client.Object, err error) bool {
	kind, key := kindOf(object), client.ObjectKeyFromObject(object)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err == nil {
		delete(o.known[kind], key)
		return false
	}
	if o.known == nil {
		o.known = map[string]map[client.ObjectKey]client.Object{}
	}
	if o.known[kind] == nil {
		o.known[kind] = map[client.ObjectKey]client.Object{}
	}
	before := o.known[kind][key]
	o.known[kind][key] = object
	return o.telling && (before == nil || before.GetAnnotations()[Annotation] != object.GetAnnotations()[Annotation])
}
