// SPDX-License-Identifier: Apache-2.0

// Package singleobject watches single objects by name. It only needs the right to read
// these objects.
package singleobject

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Object contains one object as it was last observed. It is a runnable of a manager and
// runs on every replica. Its methods may be called from several goroutines.
type Object[T runtime.Object] struct {
	resource string
	key      string
	informer cache.SharedIndexInformer
	known    chan struct{}
	settle   func() // closes known, once

	mu       sync.Mutex
	rejected error
	changed  []func()
}

// Watch prepares to watch an object of a resource that a client reads. The namespace is
// empty for a cluster-scoped resource.
func Watch[T runtime.Object](client cache.Getter, resource string, example T, key types.NamespacedName) *Object[T] {
	source := cache.NewListWatchFromClient(client, resource, key.Namespace, fields.OneTermEqualSelector("metadata.name", key.Name))
	o := &Object[T]{
		resource: resource,
		key:      cache.ObjectName{Namespace: key.Namespace, Name: key.Name}.String(),
		informer: cache.NewSharedIndexInformer(source, example, 0, nil),
		known:    make(chan struct{}),
	}
	o.settle = sync.OnceFunc(func() { close(o.known) })
	// The setters only fail for an informer that has already started.
	_ = o.informer.SetWatchErrorHandlerWithContext(o.failed)
	_, _ = o.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { o.notify() },
		UpdateFunc: func(any, any) { o.notify() },
		DeleteFunc: func(any) { o.notify() },
	})
	return o
}

// OnChange registers a function that is called after each change of what the methods
// return. It must not block.
func (o *Object[T]) OnChange(do func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.changed = append(o.changed, do)
}

// Start watches until ctx ends.
func (o *Object[T]) Start(ctx context.Context) error {
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-o.informer.HasSyncedChecker().Done():
			o.settle()
			o.notify()
		case <-ctx.Done():
		}
	})
	o.informer.RunWithContext(ctx)
	waiting.Wait()
	return nil
}

// NeedLeaderElection returns false: every replica watches.
func (*Object[T]) NeedLeaderElection() bool { return false }

// Get returns the object, and whether there is one. Do not modify it.
func (o *Object[T]) Get() (T, bool) {
	var none T
	found, exists, err := o.informer.GetStore().GetByKey(o.key)
	if err != nil || !exists {
		return none, false
	}
	object, ok := found.(T)
	return object, ok
}

// Known returns a channel that is closed once it is known whether the object exists, or
// that it may not be read.
func (o *Object[T]) Known() <-chan struct{} { return o.known }

// Rejected returns why the object may not be read, or nil if it may. The watch is retried
// with growing pauses.
func (o *Object[T]) Rejected() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.informer.HasSynced() {
		return nil
	}
	return o.rejected
}

// failed is called with the error of a list or watch. It logs a rejection once.
func (o *Object[T]) failed(ctx context.Context, reflector *cache.Reflector, err error) {
	if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
		cache.DefaultWatchErrorHandler(ctx, reflector, err)
		return
	}
	o.mu.Lock()
	first := o.rejected == nil
	o.rejected = err
	o.mu.Unlock()
	o.settle()
	if first {
		ctrl.Log.WithName("admission").Info("an object may not be watched", "resource", o.resource, "name", o.key, "reason", err.Error())
		o.notify()
	}
}

// notify calls the functions of OnChange.
func (o *Object[T]) notify() {
	o.mu.Lock()
	changed := o.changed
	o.mu.Unlock()
	for _, do := range changed {
		do()
	}
}
