// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
)

// sink receives the events that would be sent to the API server.
type sink struct{ sent chan *corev1.Event }

func (s sink) Create(e *corev1.Event) (*corev1.Event, error) { return s.keep(e) }
func (s sink) Update(e *corev1.Event) (*corev1.Event, error) { return s.keep(e) }
func (s sink) Patch(e *corev1.Event, _ []byte) (*corev1.Event, error) {
	return s.keep(e)
}

func (s sink) keep(e *corev1.Event) (*corev1.Event, error) {
	s.sent <- e
	return e, nil
}

// A group of ten Deployments: each is paused, activated, unpaused and ready.
func TestAllEventsOfALargeGroupAreSentAsTheyAre(t *testing.T) {
	all, received := newBroadcasters(), sink{make(chan *corev1.Event, 100)}
	defer all.Shutdown()
	all.start(received)
	events := all.recorder(clientgoscheme.Scheme, corev1.EventSource{Component: "test"})
	about := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "group", UID: "1"}}
	var want []string
	for i := range 10 {
		for _, reason := range []string{"DeploymentPaused", "DeploymentActivated", "DeploymentUnpaused", "ActiveDeploymentReady"} {
			message := fmt.Sprintf("shop/d%d", i)
			events.Event(about, corev1.EventTypeNormal, reason, message)
			want = append(want, reason+" "+message)
		}
	}
	for _, one := range want {
		select {
		case e := <-received.sent:
			if got := e.Reason + " " + e.Message; got != one {
				t.Fatalf("the event %q was sent, want %q", got, one)
			}
		case <-time.After(time.Minute):
			t.Fatalf("the event %q was not sent", one)
		}
	}
}

// TestNoEventOfAReleaseForManyIsLost covers a slow API server: here it accepts no event
// before all have been emitted.
func TestNoEventOfAReleaseForManyIsLost(t *testing.T) {
	const many = 10000
	all, received := newBroadcasters(), sink{make(chan *corev1.Event)}
	defer all.Shutdown()
	all.start(received)
	events := all.recorder(clientgoscheme.Scheme, corev1.EventSource{Component: "test"})
	for i := range many {
		about := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: fmt.Sprintf("app-%05d", i)}}
		events.Eventf(about, corev1.EventTypeNormal, "Promoted", "%s", about.Name)
	}
	sent := map[string]bool{}
	for len(sent) < many {
		select {
		case e := <-received.sent:
			sent[e.Message] = true
		case <-time.After(time.Minute):
			t.Fatalf("%d of %d events were sent", len(sent), many)
		}
	}
}

var _ record.EventSink = sink{}
