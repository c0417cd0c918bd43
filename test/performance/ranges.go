// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"strconv"

	"sigs.k8s.io/yaml"
)

//go:embed ranges.yaml
var rangeFile []byte

// expectation is the range of a figure.
type expectation struct {
	// Figure is the key of the figure.
	Figure string `json:"figure"`
	// Least and Most are the limits, both included. nil is no limit.
	Least *float64 `json:"least,omitempty"`
	Most  *float64 `json:"most,omitempty"`
	// Rollouts limits the expectation to fleets of that size. 0 means all fleets.
	Rollouts int `json:"rollouts,omitempty"`
}

// readRanges reads a range file. An unknown figure and a range without limits are errors.
func readRanges(content []byte) ([]expectation, error) {
	var all []expectation
	if err := yaml.UnmarshalStrict(content, &all); err != nil {
		return nil, fmt.Errorf("read the range file: %w", err)
	}
	for _, e := range all {
		if _, known := figureOf(e.Figure); !known {
			return nil, fmt.Errorf("the range file expects something of %q, which is no figure", e.Figure)
		}
		if e.Least == nil && e.Most == nil {
			return nil, fmt.Errorf("the range file expects nothing of %s: give least or most", e.Figure)
		}
	}
	return all, nil
}

// concerns reports whether the expectation applies to a figure of a fleet.
func (e expectation) concerns(s size, key string) bool {
	return e.Figure == key && (e.Rollouts == 0 || e.Rollouts == s.Rollouts)
}

// holds reports whether a value is in the range.
func (e expectation) holds(value float64) bool {
	return (e.Least == nil || value >= *e.Least) && (e.Most == nil || value <= *e.Most)
}

// String formats the range.
func (e expectation) String() string {
	switch {
	case e.Most == nil:
		return "≥ " + exact(*e.Least)
	case e.Least == nil && *e.Most == 0:
		return "0" // no figure is negative
	case e.Least == nil:
		return "≤ " + exact(*e.Most)
	case *e.Least == *e.Most:
		return exact(*e.Most)
	}
	return exact(*e.Least) + " to " + exact(*e.Most)
}

func exact(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

// check compares results with the expectations and returns the differences. If complete
// is set, a figure that was not measured at all is a difference as well.
func check(expectations []expectation, results []result, complete bool) []string {
	var wrong []string
	for _, e := range expectations {
		found := false
		for _, r := range results {
			value, measured := r.Figures[e.Figure]
			if !measured || !e.concerns(r.size, e.Figure) {
				continue
			}
			found = true
			if !e.holds(value) {
				wrong = append(wrong, fmt.Sprintf("%s: %s is %s, expected %s", r, e.Figure, exact(value), e))
			}
		}
		if !found && complete {
			wrong = append(wrong, fmt.Sprintf("%s was not measured, expected %s", e.Figure, e))
		}
	}
	return wrong
}
