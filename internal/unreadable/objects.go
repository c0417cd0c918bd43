// SPDX-License-Identifier: Apache-2.0

package unreadable

import (
	"context"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Objects records which objects of its caches cannot be read, and reports them.
type Objects struct {
	// Report is called once for each such object, and again if the cause changes. It must
	// not block.
	Report func(object client.Object, err error)

	mu        sync.Mutex
	reporting bool
	known     map[string]map[client.ObjectKey]client.Object // by kind
}

// Start reports all recorded objects, and from then on each new one. Only one of several
// replicas should run it.
func (o *Objects) Start(ctx context.Context) error {
	o.mu.Lock()
	o.reporting = true
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

// Count returns how many objects of each kind cannot be read. It omits kinds without such
// objects.
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

// follow records the objects that an informer receives.
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

// note records an object that cannot be read. It reports whether Report must be called
// now.
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
	return o.reporting && (before == nil || before.GetAnnotations()[Annotation] != object.GetAnnotations()[Annotation])
}
