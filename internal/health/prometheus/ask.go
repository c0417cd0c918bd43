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

	"github.com/fluxrollouts/rollout-controller/internal/health/destination"
	"github.com/fluxrollouts/rollout-controller/internal/health/limit"
	"github.com/fluxrollouts/rollout-controller/internal/health/probe"
)

// Server is one Prometheus, for one measurement. Close it.
type Server struct {
	session *probe.Session
	api     prometheusv1.API
}

// Open returns a server. Nothing is sent yet. The size of a body that the options contain
// has no meaning.
func Open(ctx context.Context, guard destination.Guard, options probe.Options) (*Server, error) {
	options.MostOfBody = limit.Answer
	session, err := probe.Open(ctx, guard, options)
	if err != nil {
		return nil, err
	}
	address := options.Target.URL()
	sender := session.Client()
	sender.Transport = sparse{sender.Transport}
	client, err := api.NewClient(api.Config{Address: address.String(), Client: sender})
	if err != nil {
		return nil, fmt.Errorf("use the address of Prometheus: %w", err)
	}
	return &Server{session, prometheusv1.NewAPI(client)}, nil
}

// Close closes the connection.
func (s *Server) Close() { s.session.Close() }

// Ask sends a question. The text of an error may contain what the server has written:
// probe.Cause says what may be shown.
func (s *Server) Ask(ctx context.Context, question Question) (Data, error) {
	question.At = question.At.Truncate(precision)
	ctx, cancel := context.WithTimeout(ctx, question.Timeout)
	defer cancel()
	value, warnings, err := s.send(ctx, question)
	if err != nil {
		return Data{}, s.explain(ctx, err)
	}
	data, err := read(value)
	data.Warnings = len(warnings)
	return data, err
}

// send sends a question with the limits that Prometheus itself can keep.
func (s *Server) send(ctx context.Context, question Question) (model.Value, prometheusv1.Warnings, error) {
	if question.Range == nil {
		return s.api.Query(ctx, question.Query, question.At, limits(question, question.lookbackDelta())...)
	}
	over, back := question.span()
	return s.api.QueryRange(ctx, question.Query, over, limits(question, back)...)
}

func limits(question Question, back time.Duration) []prometheusv1.Option {
	return []prometheusv1.Option{
		prometheusv1.WithTimeout(whole(question.Timeout)),
		prometheusv1.WithLookbackDelta(whole(back)),
		prometheusv1.WithLimit(limit.Series + 1),
	}
}

// Baseline sends the question for a baseline. It returns nil if there is no number. Several
// series are an error.
func (s *Server) Baseline(ctx context.Context, question Question) (*float64, error) {
	data, err := s.Ask(ctx, question)
	if err != nil || len(data.Series) == 0 {
		return nil, err
	}
	value, ok := data.Value()
	if !ok {
		return nil, errManyBaselines
	}
	return &value, nil
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
