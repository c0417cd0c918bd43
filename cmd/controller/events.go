// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
)

// senders is how many events are sent at a time. A broadcaster sends one after the other,
// and drops new ones while a thousand are waiting: a single one lost most events of ten
// thousand promotions.
const senders = 16

// eventLimits define how many events about one object are sent in a row, how many more
// per second, and how many similar ones before they are combined into one. A coordination
// emits several events for each of its Deployments, and with the defaults of Kubernetes
// all events from the 26th on would be dropped. All senders together remember the last
// events of a thousand objects, which needs two megabytes: an object with many events is
// always among them.
var eventLimits = record.CorrelatorOptions{BurstSize: 300, QPS: 1, MaxEvents: 100, LRUCacheSize: 1024 / senders}

// broadcasters divide the objects between them, so the events of each object stay in
// order.
type broadcasters [senders]record.EventBroadcaster

func newBroadcasters() *broadcasters {
	all := &broadcasters{}
	for i := range all {
		all[i] = record.NewBroadcasterWithCorrelatorOptions(eventLimits)
	}
	return all
}

// startEvents sends events until the broadcasters are shut down. It does not use the
// broadcaster of the manager: a broadcaster given to the manager sends each event twice,
// once for its own leader election.
func startEvents(mgr ctrl.Manager) (*broadcasters, error) {
	config := rest.CopyConfig(mgr.GetConfig())
	config.ContentType = runtime.ContentTypeProtobuf // half the work of JSON
	clients, err := corev1client.NewForConfigAndClient(config, mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("prepare to send events: %w", err)
	}
	all := newBroadcasters()
	all.start(&corev1client.EventSinkImpl{Interface: clients.Events("")})
	return all, nil
}

func (b *broadcasters) start(sink record.EventSink) {
	for _, broadcaster := range b {
		broadcaster.StartRecordingToSink(sink)
	}
}

// Shutdown sends the remaining events.
func (b *broadcasters) Shutdown() {
	for _, broadcaster := range b {
		broadcaster.Shutdown()
	}
}

// recorder returns the recorder for events of a source.
func (b *broadcasters) recorder(scheme *runtime.Scheme, source corev1.EventSource) record.EventRecorder {
	var all recorders
	for i, broadcaster := range b {
		all[i] = broadcaster.NewRecorder(scheme, source)
	}
	return all
}

// eventsBy returns the recorder of a component, which is the source of its events.
// Clients of these APIs select core/v1 events by their source, and sort them by their
// last time.
func (w wiring) eventsBy(component string) record.EventRecorder {
	return w.broadcasters.recorder(w.GetScheme(), corev1.EventSource{Component: component})
}

// recorders contains one recorder per broadcaster.
type recorders [senders]record.EventRecorder

// of returns the recorder for all events of an object.
func (r recorders) of(object runtime.Object) record.EventRecorder {
	hash := fnv.New32a()
	if o, err := meta.Accessor(object); err == nil {
		_, _ = hash.Write([]byte(o.GetNamespace() + "/" + o.GetName()))
	}
	return r[hash.Sum32()%senders]
}

func (r recorders) Event(object runtime.Object, kind, reason, message string) {
	r.of(object).Event(object, kind, reason, message)
}

func (r recorders) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	r.of(object).Eventf(object, kind, reason, format, args...)
}

func (r recorders) AnnotatedEventf(object runtime.Object, annotations map[string]string, kind, reason, format string, args ...any) {
	r.of(object).AnnotatedEventf(object, annotations, kind, reason, format, args...)
}
