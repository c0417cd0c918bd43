// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxrollouts/rollout-controller/test/scenario"
)

// counts are the figures that do not depend on the machine.
var counts = []string{
	"wave.status", "wave.repository", "wave.kustomization", "wave.events", "wave.reads", "wave.others",
	"bake.status", "bake.events", "bake.checks", "bake.reads", "rest.requests", "storm.writes", "restart.writes",
	"cli.get.pages", "cli.explain.requests",
}

// environmentCounts are those of Environments.
var environmentCounts = []string{
	"environments.reads", "environments.status", "environments.events", "environments.records", "environments.hold", "environments.held",
}

// measurementCounts are those of HealthChecks that are measured.
var measurementCounts = []string{
	"measurements.asked", "measurements.status", "measurements.events", "measurements.reads", "measurements.alone.checks", "measurements.checks",
}

// TestRequestsToTheAPIServer runs the benchmark with small fleets, several at a time: it
// checks only the counts, not the times.
func TestRequestsToTheAPIServer(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a control plane")
	}
	ctrl.SetLogger(logr.Discard())
	program, err := scenario.BuildController(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	ranges, err := readRanges(rangeFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []plan{
		{size: size{20, 1}, Waves: 1, Rest: time.Second},
		{size: size{20, 5}, Waves: 1, Floor: true, Rest: time.Second},
		onEnvironments(size{20, 5}),
		onMeasurements(size{20, 5}),
	} {
		wanted, name := counts, ""
		switch {
		case p.Environments:
			wanted, name = environmentCounts, "Environments, "
		case p.Measurements:
			wanted, name = measurementCounts, "measurements, "
		default:
			p.Bakes, p.Storm, p.CommandLine = 1, 2, true
		}
		t.Run(name+p.size.String(), func(t *testing.T) {
			t.Parallel()
			b, err := newBench(t.Context(), setting{p.Rollouts, p.Namespaces, "", 2 * time.Second, p.history(), p.memory()}, program, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := b.close(); err != nil {
					t.Error(err)
				}
			}()
			found, err := b.measure(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			hold(t, ranges, wanted, found)
		})
	}
}

// hold fails the test for every count that is out of range.
func hold(t *testing.T, ranges []expectation, wanted []string, found measured) {
	t.Helper()
	for _, e := range ranges {
		value, measured := found[e.Figure]
		switch {
		case !slices.Contains(wanted, e.Figure):
		case !measured:
			t.Errorf("%s was not measured", e.Figure)
		case !e.holds(value):
			t.Errorf("%s is %s, want %s", e.Figure, exact(value), e)
		}
	}
}

// `make test-all` checks the counts against the range file. It would not check a count
// that has no range.
func TestEveryCountHasARange(t *testing.T) {
	ranges, err := readRanges(rangeFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range slices.Concat(counts, environmentCounts, measurementCounts) {
		found := false
		for _, e := range ranges {
			found = found || e.concerns(size{50, 1}, key) && e.Most != nil
		}
		if !found {
			t.Errorf("nothing is expected of %s in fleets of every size", key)
		}
	}
}
