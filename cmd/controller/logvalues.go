// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/go-logr/logr"
)

// lateValues adds the values of a logger to each line when the line is written. Zap
// encodes them when the logger gets them, and controller-runtime gives each reconciliation
// a logger with a handful, although most reconciliations write no line.
type lateValues struct {
	logr.LogSink
	values []any
}

// withLateValues returns a logger that writes the same lines as the given one.
func withLateValues(log logr.Logger) logr.Logger {
	return log.WithSink(lateValues{LogSink: log.WithCallDepth(1).GetSink()})
}

func (s lateValues) Info(level int, message string, values ...any) {
	s.LogSink.Info(level, message, slices.Concat(s.values, values)...)
}

func (s lateValues) Error(err error, message string, values ...any) {
	s.LogSink.Error(err, message, slices.Concat(s.values, values)...)
}

func (s lateValues) WithValues(values ...any) logr.LogSink {
	return lateValues{s.LogSink, slices.Concat(s.values, values)}
}

func (s lateValues) WithName(name string) logr.LogSink {
	return lateValues{s.LogSink.WithName(name), s.values}
}

// WithCallDepth implements [logr.CallDepthLogSink].
func (s lateValues) WithCallDepth(depth int) logr.LogSink {
	if deep, ok := s.LogSink.(logr.CallDepthLogSink); ok {
		return lateValues{deep.WithCallDepth(depth), s.values}
	}
	return s
}
