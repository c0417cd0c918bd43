// SPDX-License-Identifier: Apache-2.0

// Command selectors reads queries with Prometheus' own parser. It reads a JSON list of
// queries from standard input. For each query it prints the error, or the metrics that
// the query selects and the labels that it selects them by.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// query is the result for one query. The package test/monitoring reads it.
type query struct {
	Error     string     `json:"error,omitempty"`
	Selectors []selector `json:"selectors,omitempty"`
}

type selector struct {
	Metric string   `json:"metric"`
	Labels []string `json:"labels,omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var texts []string
	if err := json.NewDecoder(os.Stdin).Decode(&texts); err != nil {
		return fmt.Errorf("read the queries: %w", err)
	}
	prometheus := parser.NewParser(parser.Options{})
	queries := make([]query, 0, len(texts))
	for _, text := range texts {
		expression, err := prometheus.ParseExpr(text)
		if err != nil {
			queries = append(queries, query{Error: err.Error()})
			continue
		}
		queries = append(queries, query{Selectors: selectorsOf(expression)})
	}
	return json.NewEncoder(os.Stdout).Encode(queries)
}

func selectorsOf(expression parser.Expr) []selector {
	var all []selector
	for _, matchers := range parser.ExtractSelectors(expression) {
		var s selector
		for _, m := range matchers {
			if m.Name == labels.MetricName {
				s.Metric = m.Value
				continue
			}
			s.Labels = append(s.Labels, m.Name)
		}
		all = append(all, s)
	}
	return all
}
