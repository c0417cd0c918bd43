// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"slices"
	"sync"
	"time"

	fluxmetrics "github.com/fluxcd/pkg/runtime/metrics"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Durations records how long each reconciliation took, as every Flux controller
// does: gotk_reconcile_duration_seconds, per object. What is recorded of an
// object ends with it.
type Durations struct {
	recorder *fluxmetrics.Recorder
	now      func() time.Time
	objects  client.Reader

	mu sync.Mutex
	// together are the names of those that were reconciled together last, by kind
	// and namespace.
	together map[[2]string][]string
}

// NewDurations returns what records durations by the given clock, which must be
// the real one. Whether an object is gone it asks the given reader, which
// should be the cache that the reconcilers read from.
func NewDurations(now func() time.Time, objects client.Reader) *Durations {
	return &Durations{recorder: fluxmetrics.NewRecorder(), now: now, objects: objects}
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
		object, live := corev1.ObjectReference{Kind: kind, Namespace: request.Namespace, Name: request.Name}, empty()
		read := d.objects.Get(ctx, request.NamespacedName, live, client.UnsafeDisableDeepCopy)
		if apierrors.IsNotFound(read) || read == nil && own != nil && !own(live) {
			d.recorder.DeleteDuration(object)
		} else {
			d.recorder.RecordDuration(object, begun)
		}
		return result, err
	})
}

// Together records that the objects of a kind in a namespace were all reconciled
// in one go, which began at the given time. Those that were there the last time
// and are not any more have ended.
func (d *Durations) Together(kind, namespace string, names []string, begun time.Time) {
	if d == nil {
		return
	}
	for _, name := range names {
		d.recorder.RecordDuration(corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name}, begun)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	key := [2]string{kind, namespace}
	for _, name := range d.together[key] {
		if !slices.Contains(names, name) {
			d.recorder.DeleteDuration(corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name})
		}
	}
	if d.together == nil {
		d.together = map[[2]string][]string{}
	}
	d.together[key] = names
	if len(names) == 0 {
		delete(d.together, key)
	}
}

// Describe implements [prometheus.Collector].
func (d *Durations) Describe(descriptions chan<- *prometheus.Desc) {
	for _, c := range d.recorder.Collectors() {
		c.Describe(descriptions)
	}
}

// Collect implements [prometheus.Collector]. Flux's other two metrics, of
// conditions and of suspension, stay empty: kube-state-metrics tells of them,
// as it does for Flux.
func (d *Durations) Collect(metrics chan<- prometheus.Metric) {
	for _, c := range d.recorder.Collectors() {
		c.Collect(metrics)
	}
}
