// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Durations records how long each reconciliation took, as every Flux controller
// does: gotk_reconcile_duration_seconds, per object. What is recorded of an
// object ends with it.
type Durations struct {
	now     func() time.Time
	objects client.Reader

	mu    sync.Mutex
	known map[object]*histogram
	// together are the names of those that were reconciled together last, by kind
	// and namespace.
	together map[[2]string][]string
}

// NewDurations returns what records durations by the given clock. Whether an
// object is gone it asks the given reader, which should be the cache that the
// reconcilers read from.
func NewDurations(now func() time.Time, objects client.Reader) *Durations {
	return &Durations{now: now, objects: objects, known: map[object]*histogram{}}
}

// Of returns the reconciler of a kind with its durations recorded. Own says
// which objects it acts for; nil are all. Empty returns an empty object of that
// kind.
func (d *Durations) Of(kind string, reconciler reconcile.Reconciler, own func(client.Object) bool, empty func() client.Object) reconcile.Reconciler {
	if d == nil {
		return reconciler
	}
	return reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		begun := d.now()
		result, err := reconciler.Reconcile(ctx, request)
		took, of, live := d.now().Sub(begun), object{kind, request.Namespace, request.Name}, empty()
		read := d.objects.Get(ctx, request.NamespacedName, live, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(read) || read == nil && own != nil && !own(live) {
			d.forget(of)
		} else {
			d.record(of, took)
		}
		return result, err
	})
}

func (d *Durations) record(of object, took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.known[of]
	if h == nil {
		h = &histogram{}
		d.known[of] = h
	}
	h.observe(took.Seconds())
}

func (d *Durations) forget(of object) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.known, of)
}

// Together records that the objects of a kind in a namespace were all reconciled
// in one go, which began at the given time. Those that were there the last time
// and are not any more have ended.
func (d *Durations) Together(kind, namespace string, names []string, begun time.Time) {
	if d == nil {
		return
	}
	took := d.now().Sub(begun)
	for _, name := range names {
		d.record(object{kind, namespace, name}, took)
	}
	for _, name := range d.exchange([2]string{kind, namespace}, names) {
		if !slices.Contains(names, name) {
			d.forget(object{kind, namespace, name})
		}
	}
}

// exchange notes who is reconciled together, and returns who was the last time.
func (d *Durations) exchange(key [2]string, names []string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.together[key]
	if d.together == nil {
		d.together = map[[2]string][]string{}
	}
	d.together[key] = names
	if len(names) == 0 {
		delete(d.together, key)
	}
	return before
}

// Describe implements [prometheus.Collector].
func (d *Durations) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- duration }

// Collect implements [prometheus.Collector]. Flux's other two metrics, of
// conditions and of suspension, are left to kube-state-metrics, which tells of
// them for Flux too.
func (d *Durations) Collect(metrics chan<- prometheus.Metric) {
	d.mu.Lock()
	all := measure(d.known)
	d.mu.Unlock()
	for _, m := range all {
		metrics <- m
	}
}
