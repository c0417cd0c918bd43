// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Reasons why an event was dropped.
const (
	reasonQueueFull     = "queue_full"    // newer events replaced it
	reasonUndeliverable = "undeliverable" // no attempt was answered, or only with server errors
	reasonRejected      = "rejected"      // the endpoint refused it permanently
	reasonShutdown      = "shutdown"      // the process ended first
)

// metrics count the results of events. Every series exists from the start, so the first
// loss is an increase from zero.
type metrics struct {
	sent    *prometheus.CounterVec
	dropped *prometheus.CounterVec
	length  prometheus.GaugeFunc
}

func newMetrics(q *queue) metrics {
	m := metrics{
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollout_notifications_sent_total",
			Help: "Flux events that notification-controller took, by its answer.",
		}, []string{"result"}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rollout_notifications_dropped_total",
			Help: "Flux events that were lost, by the reason.",
		}, []string{"reason"}),
		length: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "rollout_notifications_queue_length",
			Help: "Flux events that wait for their delivery.",
		}, func() float64 { return float64(q.length()) }),
	}
	for _, result := range []result{accepted, duplicate} {
		m.sent.WithLabelValues(string(result))
	}
	for _, reason := range []string{reasonQueueFull, reasonUndeliverable, reasonRejected, reasonShutdown} {
		m.dropped.WithLabelValues(reason)
	}
	return m
}

func (m metrics) register(registry prometheus.Registerer) error {
	err := errors.Join(registry.Register(m.sent), registry.Register(m.dropped), registry.Register(m.length))
	if err != nil {
		return fmt.Errorf("register the metrics of notifications: %w", err)
	}
	return nil
}

func (m metrics) send(r result) { m.sent.WithLabelValues(string(r)).Inc() }

func (m metrics) drop(reason string, n int) { m.dropped.WithLabelValues(reason).Add(float64(n)) }
