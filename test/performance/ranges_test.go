// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRangeFileThatMeansNothingIsRefused(t *testing.T) {
	for name, tt := range map[string]struct{ content, says string }{
		"a figure that nobody measures": {"- {figure: wave.tmie, most: 1}", `"wave.tmie", which is no figure`},
		"no limit":                      {"- {figure: wave.time}", "expects nothing of wave.time"},
		"a field that nobody reads":     {"- {figure: wave.time, max: 1}", `unknown field "max"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := readRanges([]byte(tt.content)); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the error is %v, want it to say %q", err, tt.says)
			}
		})
	}
}

func TestResultsAreHeldToTheirRanges(t *testing.T) {
	ranges, err := readRanges([]byte(`
- {figure: wave.ratio, most: 1.3}
- {figure: wave.status, least: 2, most: 2}
- {figure: memory.peak, most: 256, rollouts: 10000}
- {figure: storm.writes, most: 0}
`))
	if err != nil {
		t.Fatal(err)
	}
	results := []result{
		{size: size{1000, 1}, Figures: measured{"wave.ratio": 1.3, "wave.status": 2, "memory.peak": 300, "storm.writes": 0}},
		{size: size{10000, 100}, Figures: measured{"wave.ratio": 1.31, "wave.status": 1.999, "memory.peak": 256.5}},
	}
	want := []string{
		"10,000 in 100 namespaces: wave.ratio is 1.31, expected ≤ 1.3",
		"10,000 in 100 namespaces: wave.status is 1.999, expected 2",
		"10,000 in 100 namespaces: memory.peak is 256.5, expected ≤ 256",
	}
	if diff := cmp.Diff(want, check(ranges, results, true)); diff != "" {
		t.Errorf("what is wrong (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string(nil), check(ranges, results[:1], false)); diff != "" {
		t.Errorf("what is wrong with a part (-want +got):\n%s", diff)
	}
	missing := []string{"memory.peak was not measured, expected ≤ 256"}
	if diff := cmp.Diff(missing, check(ranges, results[:1], true)); diff != "" {
		t.Errorf("what is wrong if a fleet is missing (-want +got):\n%s", diff)
	}
}
