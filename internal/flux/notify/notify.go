// SPDX-License-Identifier: Apache-2.0

// Package notify delivers Flux events to notification-controller, independently of the
// reconcilers: none of them ever waits for it.
//
// An event that is given to [Sender.Send] waits in a bounded queue and is posted from
// there, one event at a time. Namespaces take turns, and the events of each namespace
// keep their order. An endpoint that is slow, refuses or hangs does not block any worker,
// and the memory is limited to a maximum number of events: the oldest events of the
// namespace with the most events are dropped, and dropped events are counted. The creator
// of an event limits its size.
//
// Delivery is at most once. The status of the object is the record. An event that was not
// delivered when the process ends is lost.
package notify

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1beta1"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// most is the maximum number of waiting events. Above it, old ones are dropped.
	most = 1000
	// attempts is how often an event is posted before it is dropped.
	attempts = 5
	// patience is how long one attempt may take.
	patience = 5 * time.Second
	// parting is how long the process still delivers events when it ends.
	parting = 3 * time.Second
)

// pauses returns the pauses between failed attempts. They grow while nothing is
// delivered, also from one event to the next. Therefore an endpoint that is down for a
// minute costs only a few events.
func pauses() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Cap: 15 * time.Second, Steps: 10}
}

// Sender delivers events. It must be added to the manager.
type Sender struct {
	address  string
	client   *http.Client
	log      logr.Logger
	queue    *queue
	metrics  metrics
	patience time.Duration // of one attempt

	// Only the goroutine of Start uses these.
	pauses wait.Backoff
	lost   int // since the last delivery
}

// New returns a Sender that posts to an address, for example
// http://notification-controller.flux-system.svc.cluster.local./, once it is started. It
// returns an error if the address is not an HTTP URL, or if its metrics cannot be
// registered.
func New(address string, log logr.Logger, registry prometheus.Registerer) (*Sender, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, fmt.Errorf("the address for events must be an HTTP URL, not %q", address)
	}
	s := &Sender{
		address:  address,
		client:   &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()},
		log:      log,
		queue:    newQueue(most),
		patience: patience,
		pauses:   pauses(),
	}
	s.metrics = newMetrics(s.queue)
	return s, s.metrics.register(registry)
}

// Send queues an event for delivery. It returns at once.
func (s *Sender) Send(event eventv1.Event) {
	taken, gaveWay := s.queue.push(event)
	switch {
	case !taken:
		s.metrics.drop(reasonShutdown, 1)
	case gaveWay:
		s.metrics.drop(reasonQueueFull, 1)
	}
}

// NeedLeaderElection returns true: the Sender runs where the reconcilers run.
func (s *Sender) NeedLeaderElection() bool { return true }

// Start delivers events until ctx ends. After that, it delivers waiting events for a
// short time.
func (s *Sender) Start(ctx context.Context) error {
	defer s.client.CloseIdleConnections()
	for {
		select {
		case <-ctx.Done():
			s.part(context.WithoutCancel(ctx))
			return nil
		case <-s.queue.arrived:
			s.empty(ctx)
		}
	}
}

// empty delivers the waiting events. An interrupted event goes back into the queue.
func (s *Sender) empty(ctx context.Context) {
	for ctx.Err() == nil {
		event, ok := s.queue.pop()
		if !ok {
			return
		}
		if !s.deliver(ctx, event) {
			s.queue.putBack(event)
		}
	}
}

// deliver tries until the event is delivered or dropped. It returns false if ctx ended
// before.
func (s *Sender) deliver(ctx context.Context, event eventv1.Event) bool {
	for attempt := 1; ; attempt++ {
		result, err := s.post(ctx, event)
		switch {
		case result == accepted, result == duplicate:
			s.delivered(result)
			return true
		case ctx.Err() != nil:
			return false
		case result == rejected:
			s.giveUp(reasonRejected, err)
			return true
		case attempt == attempts:
			s.giveUp(reasonUndeliverable, err)
			return true
		case !pause(ctx, s.pauses.Step()):
			return false
		}
	}
}

// delivered ends an outage, if there was one.
func (s *Sender) delivered(result result) {
	s.metrics.send(result)
	s.pauses = pauses()
	if s.lost > 0 {
		s.log.Info("Flux events are delivered again", "givenUp", s.lost)
		s.lost = 0
	}
}

// giveUp drops an event. It logs this once per outage.
func (s *Sender) giveUp(reason string, err error) {
	s.metrics.drop(reason, 1)
	if s.lost == 0 {
		s.log.Error(err, "Flux events cannot be delivered; promotions go on, and rollout_notifications_dropped_total counts what is lost",
			"address", s.address)
	}
	s.lost++
}

// part closes the queue and tries each remaining event once, as long as there is time and
// the endpoint answers.
func (s *Sender) part(ctx context.Context) {
	s.queue.close()
	ctx, cancel := context.WithTimeout(ctx, parting)
	defer cancel()
	for event, ok := s.queue.pop(); ok; event, ok = s.queue.pop() {
		result, _ := s.post(ctx, event)
		switch result {
		case accepted, duplicate:
			s.metrics.send(result)
		case rejected:
			s.metrics.drop(reasonRejected, 1)
		case failed:
			s.metrics.drop(reasonShutdown, 1+s.queue.clear())
		}
	}
}

// pause waits. It returns false if ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
