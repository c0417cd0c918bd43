// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func reported() report {
	most := 1.2
	results := []result{
		{size: smallest, Figures: measured{"wave.time": 1, "wave.cpu": 5, "wave.work": 0.1, "restart.writes": 0}},
		{size: size{10000, 100}, Figures: measured{"wave.time": 123.456, "wave.floor": 98.7, "wave.cpu": 7.5, "wave.work": 0.15, "restart.writes": 0}},
	}
	relate(results)
	return report{results: results, expectations: []expectation{
		{Figure: "wave.cpuratio", Most: &most, Rollouts: 10000},
		{Figure: "restart.writes", Most: new(float64)},
	}}
}

func TestTableComparesFleetsAndMarksWhatIsOutOfRange(t *testing.T) {
	want := [][]string{
		{"Figure", "100 in 1 namespace", "10,000 in 100 namespaces", "Expected"},
		{"wave: all targets written (s)", "1", "123", ""},
		{"wave: the same by a bare client (s)", "", "98.7", ""},
		{"wave: CPU per promotion (ms)", "5", "7.50", ""},
		{"wave: CPU, to the pace of the machine", "0.100", "0.150", ""},
		{"wave: the same, to that among 100", "", "1.50 (!)", "≤ 1.2 at 10,000"},
		{"restart: writes", "0", "0", "0"},
	}
	if diff := cmp.Diff(want, reported().table(catalogue)); diff != "" {
		t.Errorf("the table (-want +got):\n%s", diff)
	}
}

func TestFleetIsComparedWithItsSmallestNeighbours(t *testing.T) {
	worked := func(s size, work float64) result { return result{size: s, Figures: measured{"wave.work": work}} }
	large, other := size{10000, 1}, size{1000, 100}
	results := []result{
		worked(smallest, 1), worked(large, 6), worked(smallest, 3), worked(smallest, 5), worked(other, 10), worked(large, 20),
	}
	relate(results)
	got := map[string]float64{}
	for _, r := range bySize(results) {
		got[r.String()] = r.Figures["wave.cpuratio"]
	}
	want := map[string]float64{
		"100 in 1 namespace": 0, "100 in 1 namespace (2)": 0, "100 in 1 namespace (3)": 0,
		"1,000 in 100 namespaces": 2, "10,000 in 1 namespace": 3, "10,000 in 1 namespace (2)": 4,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the ratios (-want +got):\n%s", diff)
	}
}

func TestPageHasTheTableThePlotsAndWhatTheyMean(t *testing.T) {
	var page bytes.Buffer
	if err := reported().writePage(&page); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"| restart: writes | 0 | 0 | 0 |\n",
		"    x-axis [\"10,000 in 100 namespaces\"]\n    y-axis \"milliseconds\" 0 --> 15\n    bar [12.3]\n    line [9.87]\n",
		"    bar [5, 7.50]\n```\n",
		"| restart: writes | `restart.writes` | All writes",
	} {
		if !strings.Contains(page.String(), part) {
			t.Errorf("the page lacks %q:\n%s", part, page.String())
		}
	}
}

func withCommandLine() report {
	r := reported()
	r.Commit = "abc1234"
	r.results[1].Figures["cli.start"] = 42
	return r
}

func TestPageHasASectionAboutTheCommandLineIfItWasMeasured(t *testing.T) {
	var page bytes.Buffer
	if err := withCommandLine().writePage(&page); err != nil {
		t.Fatal(err)
	}
	const row = "| Figure | 10,000 in 100 namespaces | Expected |\n| --- | ---: | --- |\n| `version --client`: from start to end (ms) | 42 |  |\n"
	if strings.Count(page.String(), "\n## The command line\n") != 1 || !strings.Contains(page.String(), row) {
		t.Errorf("the page lacks the section, or %q:\n%s", row, page.String())
	}
	if before, _, _ := strings.Cut(page.String(), "## The command line"); strings.Contains(before, "cli.start") {
		t.Error("the figures of the command line are among those of the controller")
	}
}

func TestOnlyTheCommandLineIsMeasuredAlone(t *testing.T) {
	r := runner{plans: whole}
	if err := r.only("cli"); err != nil {
		t.Fatal(err)
	}
	for _, p := range r.plans {
		if want := (plan{size: p.size, CommandLine: true}); p != want {
			t.Errorf("the plan is %+v, want %+v", p, want)
		}
	}
	if !r.partial {
		t.Error("the run would miss the figures of the rest")
	}
}

func TestScenarioWithFleetsOfItsOwnIsMeasuredAloneAndHasASection(t *testing.T) {
	for name, want := range map[string][]plan{
		environmentsOnly: {onEnvironments(smallest), onEnvironments(thousandSpread), onEnvironments(tenThousandSpread)},
		measurementsOnly: {onMeasurements(smallest), onMeasurements(thousandSpread)},
	} {
		t.Run(name, func(t *testing.T) {
			r := runner{plans: whole}
			if err := r.only(name); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(r.plans, want) || !r.partial {
				t.Errorf("the plans are %+v, want %+v", r.plans, want)
			}
			r = runner{plans: whole}
			if err := errors.Join(r.choose("20/1"), r.only(name)); err != nil || len(r.plans) != 1 || r.plans[0] != alone[name](size{20, 1}) {
				t.Errorf("the plans are %+v, %v", r.plans, err)
			}
			if err := r.only(name + ",waves"); err == nil {
				t.Error("the scenarios of two kinds of fleets are accepted together")
			}
			r = runner{plans: whole}
			if err := r.only("waves"); err != nil || slices.ContainsFunc(r.plans, plan.isAlone) {
				t.Errorf("it is measured nevertheless: %+v, %v", r.plans, err)
			}
		})
	}
}

func TestSectionAboutEnvironmentsHasItsOwnFleets(t *testing.T) {
	r := withCommandLine()
	r.results = append(r.results, result{size: size{10000, 100}, Figures: measured{"environments.reads": 1}})
	var whole bytes.Buffer
	if err := r.writePage(&whole); err != nil {
		t.Fatal(err)
	}
	const row = "| Figure | 10,000 in 100 namespaces | Expected |\n| --- | ---: | --- |\n| reads per promotion | 1 |  |\n"
	if !strings.Contains(whole.String(), row) || strings.Count(whole.String(), "10,000 in 100 namespaces (2)") > 0 {
		t.Errorf("the page lacks %q, or its tables mix the fleets:\n%s", row, whole.String())
	}
}
