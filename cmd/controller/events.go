// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
)

// eventLimits are how many events about one object are sent in a row, how many
// more per second, and how many alike before they are folded into one. A
// coordination tells of each of its Deployments several times, and Kubernetes
// would be silent from the 26th event on.
var eventLimits = record.CorrelatorOptions{BurstSize: 300, QPS: 1, MaxEvents: 100}

func newBroadcaster() record.EventBroadcaster {
	return record.NewBroadcasterWithCorrelatorOptions(eventLimits)
}

// startEvents sends events until the broadcaster is shut down. It is not the
// manager's: what is given to the manager sends each event twice, once for its
// own leader election.
func startEvents(mgr ctrl.Manager) (record.EventBroadcaster, error) {
	clients, err := corev1client.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("prepare to send events: %w", err)
	}
	broadcaster := newBroadcaster()
	broadcaster.StartRecordingToSink(&corev1client.EventSinkImpl{Interface: clients.Events("")})
	log := mgr.GetLogger().WithName("events").V(1)
	broadcaster.StartEventWatcher(func(e *corev1.Event) {
		log.Info(e.Message, "type", e.Type, "object", e.InvolvedObject, "reason", e.Reason)
	})
	return broadcaster, nil
}

// eventsBy are those of a component, which is their source. Clients of these APIs
// read core/v1 events by their source, and sort them by their last time.
func (w wiring) eventsBy(component string) record.EventRecorder {
	return w.broadcaster.NewRecorder(w.GetScheme(), corev1.EventSource{Component: component})
}
