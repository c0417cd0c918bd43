// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
	"github.com/fluxrollouts/rollout-controller/internal/health/probe"
)

// Server is one Prometheus, for one measurement. Close it.
type Server struct {
	session *probe.Session
	api     prometheusv1.API
	now     func() time.Time
}

// Open returns a server. Nothing is sent yet. The size of a body that the options contain
// has no meaning.
func Open(ctx context.Context, guard destination.Guard, now func() time.Time, options probe.Options) (*Server, error) {
	options.MostOfBody = health.MostOfBody
	session, err := probe.Open(ctx, guard, options)
	if err != nil {
		return nil, err
	}
	address := options.Target.URL()
	sender := session.Client()
	sender.Transport = complete{sender.Transport}
	client, err := api.NewClient(api.Config{Address: address.String(), Client: sender})
	if err != nil {
		return nil, fmt.Errorf("use the address of Prometheus: %w", err)
	}
	return &Server{session, prometheusv1.NewAPI(client), now}, nil
}

// Close closes the connection.
func (s *Server) Close() { s.session.Close() }

// Ask sends a question, and returns the number in the answer; nil if there is none. The text
// of an error may contain what the server has written: probe.Cause says what may be shown.
func (s *Server) Ask(ctx context.Context, question Question) (*float64, error) {
	question.At = question.At.Truncate(precision)
	ctx, cancel := context.WithTimeout(ctx, question.Timeout)
	defer cancel()
	value, warnings, err := s.api.Query(ctx, question.Query, question.At, question.limits()...)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	if err := compareClocks(s.session.Date(), s.now()); err != nil {
		return nil, err
	}
	return observed(value, warnings)
}

// observed returns the number of an answer that is complete. Several series come first:
// Prometheus warns that it returned only some of them.
func observed(value model.Value, warnings prometheusv1.Warnings) (*float64, error) {
	number, err := read(value)
	if err == nil && len(warnings) > 0 {
		return nil, errWarnings
	}
	return number, err
}

// mostSeries is enough to see that there are several.
const mostSeries = 2

// limits are those that Prometheus itself can keep.
func (q Question) limits() []prometheusv1.Option {
	return []prometheusv1.Option{
		prometheusv1.WithTimeout(whole(q.Timeout)),
		prometheusv1.WithLookbackDelta(whole(q.lookbackDelta())),
		prometheusv1.WithLimit(mostSeries),
	}
}

// explain adds to an error what may be shown of it.
func (s *Server) explain(ctx context.Context, err error) error {
	var answer *prometheusv1.Error
	switch {
	case errors.Is(err, probe.ErrTooLarge):
		return fmt.Errorf("%w: %w", errManyBytes, err)
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", ctx.Err(), err)
	case errors.As(err, &answer):
		return fmt.Errorf("%w: %w", answered(s.session.Status(), answer.Type), err)
	case s.session.Status() != 0 && !probe.IsUnreachable(err):
		return fmt.Errorf("%w: %w", errNotPrometheus, err)
	}
	return err
}

// whole returns at most a duration, in a form that Prometheus accepts from Go: it accepts
// 7s and 900ms, but not 7.9s.
func whole(d time.Duration) time.Duration {
	if d < time.Second {
		return max(precision, d.Truncate(precision))
	}
	return d.Truncate(time.Second)
}
