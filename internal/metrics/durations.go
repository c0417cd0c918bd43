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

// mostSeries is the maximum number of histograms. Each has 13 lines of text, and users may
// create any number of objects.
const mostSeries = 1000

// Durations records how long each reconciliation took, as every Flux controller does:
// gotk_reconcile_duration_seconds, per object. The records of an object end when it is
// deleted. With more than a thousand objects, the records start anew, per namespace and
// kind, and if these are too many too, per kind.
type Durations struct {
	now     func() time.Time
	objects client.Reader
	seconds *prometheus.HistogramVec

	mu     sync.Mutex
	detail detail
	shown  map[object]bool // what has a histogram
	// together contains the names of the objects that were last reconciled together, by
	// kind and namespace.
	together map[[2]string][]string
}

type object struct{ kind, namespace, name string }

// detail is what objects have in common that are recorded together.
type detail int

const (
	byObject detail = iota
	byNamespace
	byKind
)

// of returns what an object is recorded as.
func (d detail) of(o object) object {
	switch d {
	case byNamespace:
		o.name = ""
	case byKind:
		o.namespace, o.name = "", ""
	case byObject:
	}
	return o
}

// NewDurations returns a Durations that uses the given clock. It uses the given reader to
// check whether an object is deleted. The reader should be the cache that the reconcilers
// read from.
func NewDurations(now func() time.Time, objects client.Reader) *Durations {
	return &Durations{now: now, objects: objects, shown: map[object]bool{}, seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "gotk_reconcile_duration_seconds",
		Help:    "The duration in seconds of a GitOps Toolkit resource reconciliation.",
		Buckets: prometheus.ExponentialBucketsRange(10e-3, 1800, 10), // as in Flux, in seconds
	}, []string{"kind", "name", "namespace"})}
}

// Of returns the reconciler of a kind with its durations recorded. own reports for which
// objects it acts; nil means all. empty returns an empty object of that kind.
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
	shown := d.detail.of(of)
	if d.shown[shown] = true; len(d.shown) > mostSeries && d.detail < byKind {
		d.detail++
		d.seconds.Reset()
		shown = d.detail.of(of)
		d.shown = map[object]bool{shown: true}
	}
	d.seconds.WithLabelValues(shown.kind, shown.name, shown.namespace).Observe(took.Seconds())
}

// forget ends the records of an object. Those of several objects stay.
func (d *Durations) forget(of object) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.detail == byObject {
		delete(d.shown, of)
		d.seconds.DeleteLabelValues(of.kind, of.name, of.namespace)
	}
}

// Together records that the objects of a kind in a namespace were all reconciled in one
// pass, which started at the given time. The records of objects of the last pass that are
// no longer there end.
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

// exchange stores the names that were reconciled together, and returns those of the last
// time.
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
func (d *Durations) Describe(descriptions chan<- *prometheus.Desc) { d.seconds.Describe(descriptions) }

// Collect implements [prometheus.Collector]. Flux's other two metrics, for conditions and
// suspension, are left to kube-state-metrics, which also provides them for Flux.
func (d *Durations) Collect(metrics chan<- prometheus.Metric) { d.seconds.Collect(metrics) }
