// SPDX-License-Identifier: Apache-2.0

// Package notify delivers Flux events to notification-controller, beside the
// reconcilers: none of them ever waits for it.
//
// What is given to [Sender.Send] waits in a bounded queue, and is posted from
// there one event at a time: namespaces take turns, and the events of each keep their
// order. An endpoint that is slow, refuses or hangs costs no worker of anybody, and no
// more memory than so many events: the oldest of the namespace that has most give way,
// and what is lost is counted. Who makes an event bounds its size.
//
// Delivery is at most once. The status of the object is the record; an event
// that was not delivered when the process ends is lost.
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
	// most is how many events wait at most; then old ones give way.
	most = 1000
	// attempts is how often an event is posted before it is given up.
	attempts = 5
	// patience is how long one attempt may take.
	patience = 5 * time.Second
	// parting is how long events are still delivered when the process ends.
	parting = 3 * time.Second
)

// pauses are those between attempts that failed. They grow while nothing is
// delivered, from one event to the next, so that an endpoint which is away for
// a minute costs a few events at most.
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
	lost   int // since something was delivered
}

// New returns a Sender that posts to an address, such as
// http://notification-controller.flux-system.svc.cluster.local./, once it is
// started. It fails if that is no HTTP URL, or if its metrics cannot be
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

// Send has an event delivered. It returns at once.
func (s *Sender) Send(event eventv1.Event) {
	taken, gaveWay := s.queue.push(event)
	switch {
	case !taken:
		s.metrics.drop(reasonShutdown, 1)
	case gaveWay:
		s.metrics.drop(reasonQueueFull, 1)
	}
}

// NeedLeaderElection says that the Sender runs where the reconcilers do.
func (s *Sender) NeedLeaderElection() bool { return true }

// Start delivers events until ctx ends, and then, for a moment, those that
// still wait.
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

// empty delivers what waits. An event that is interrupted goes back.
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

// deliver tries until the event is delivered or given up, and reports false if
// ctx ended before.
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

// giveUp says so once per outage.
func (s *Sender) giveUp(reason string, err error) {
	s.metrics.drop(reason, 1)
	if s.lost == 0 {
		s.log.Error(err, "Flux events cannot be delivered; promotions go on, and rollout_notifications_dropped_total counts what is lost",
			"address", s.address)
	}
	s.lost++
}

// part closes the queue and tries what is left in it once, as long as there is
// time and somebody answers.
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

// pause waits, and reports false if ctx ended before.
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
