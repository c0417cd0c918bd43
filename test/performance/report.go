// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/template"
)

//go:embed performance.md.tmpl
var page string

// report contains the results of a run.
type report struct {
	machine
	results      []result
	expectations []expectation
}

// compared are the figures that are compared with those of the smallest fleet, with the
// names of the ratios.
var compared = map[string]string{
	"wave.work": "wave.cpuratio", "bake.work": "bake.cpuratio", "storm.work": "storm.cpuratio",
	"wave.garbage": "wave.garbageratio",
}

// relate adds the ratios of a fleet's figures to those of the smallest fleet. It uses the
// last measurement of the smallest fleet before the fleet and the first one after it.
func relate(results []result) {
	for i, r := range results {
		if r.size == smallest {
			continue
		}
		for of, ratio := range compared {
			small, large := neighbours(results, i, of), r.Figures[of]
			if small > 0 && large > 0 {
				r.Figures[ratio] = large / small
			}
		}
	}
}

// neighbours returns the mean of a figure of the smallest fleets next to a result, in the
// order in which they were measured. It returns 0 if there are none.
func neighbours(results []result, i int, key string) float64 {
	var sum, n float64
	for _, step := range []int{-1, 1} {
		for j := i; j >= 0 && j < len(results); j += step {
			if value, measured := results[j].Figures[key]; measured && results[j].size == smallest {
				sum, n = sum+value, n+1
				break
			}
		}
	}
	return sum / max(n, 1)
}

// bySize sorts results and numbers those of fleets of the same size.
func bySize(results []result) []result {
	sorted := slices.SortedStableFunc(slices.Values(results), func(a, b result) int {
		return cmp.Or(cmp.Compare(a.Rollouts, b.Rollouts), cmp.Compare(a.Namespaces, b.Namespaces))
	})
	for i := range sorted {
		sorted[i].again = 0
		if i > 0 && sorted[i].size == sorted[i-1].size {
			sorted[i].again = sorted[i-1].again + 1
		}
	}
	return sorted
}

// table has a row per figure, and a column per fleet and for the expectation. Values out
// of range are marked.
func (r report) table(of []figure) [][]string {
	head := []string{"Figure"}
	for _, result := range r.results {
		head = append(head, result.String())
	}
	rows := [][]string{append(head, "Expected")}
	for _, f := range of {
		row, found := []string{strings.TrimSuffix(f.title+" ("+f.unit+")", " ()")}, false
		for _, result := range r.results {
			value, measured := result.Figures[f.key]
			if !measured {
				row = append(row, "")
				continue
			}
			found = true
			row = append(row, shown(value)+r.mark(result.size, f.key, value))
		}
		if found {
			rows = append(rows, append(row, r.expected(f.key)))
		}
	}
	return rows
}

func (r report) mark(s size, key string, value float64) string {
	if slices.ContainsFunc(r.expectations, func(e expectation) bool { return e.concerns(s, key) && !e.holds(value) }) {
		return " (!)"
	}
	return ""
}

// expected formats the expectations of a figure and the fleets that they apply to.
func (r report) expected(key string) string {
	var all []string
	for _, e := range r.expectations {
		switch {
		case e.Figure != key:
		case e.Rollouts > 0:
			all = append(all, e.String()+" at "+thousands(e.Rollouts))
		default:
			all = append(all, e.String())
		}
	}
	return strings.Join(all, ", ")
}

// shown formats a value with three significant digits. Whole numbers have no decimals.
func shown(value float64) string {
	if value == math.Trunc(value) {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(value))))
	return strconv.FormatFloat(value, 'f', max(0, min(digits, 3)), 64)
}

// writeText prints the tables on a terminal.
func (r report) writeText(w io.Writer) error {
	var err error
	for _, figures := range [][]figure{catalogue, commandLineFigures, environmentFigures, measurementFigures} {
		if of := r.of(figures); len(of.results) > 0 {
			err = errors.Join(err, writeRows(w, of.table(figures)))
			_, _ = fmt.Fprintln(w)
		}
	}
	return err
}

func writeRows(w io.Writer, rows [][]string) error {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell + strings.Repeat(" ", widths[i]-len([]rune(cell))+2))
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line.String(), " ")); err != nil {
			return err
		}
	}
	return nil
}

// writePage writes the report with what the figures mean.
func (r report) writePage(w io.Writer) error {
	text, err := template.New("page").Parse(page)
	if err != nil {
		return err
	}
	commandLine, err := r.section(sections[commandLineOnly])
	if err != nil {
		return err
	}
	chained, err := r.section(sections[environmentsOnly])
	if err != nil {
		return err
	}
	asked, err := r.section(sections[measurementsOnly])
	if err != nil {
		return err
	}
	r = r.of(catalogue)
	return text.Execute(w, map[string]any{
		"Machine": r.machine, "Limit": memoryLimit, "Table": markdown(r.table(catalogue)), "Plots": r.plots(), "Figures": r.explained(catalogue),
		"CommandLine": commandLine, "Environments": chained, "Measurements": asked,
	})
}

func markdown(rows [][]string) string {
	var text strings.Builder
	for i, row := range rows {
		text.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if i == 0 {
			text.WriteString("| --- " + strings.Repeat("| ---: ", len(row)-2) + "| --- |\n")
		}
	}
	return text.String()
}

// explained explains the measured figures.
func (r report) explained(of []figure) string {
	var text strings.Builder
	for _, f := range of {
		if slices.ContainsFunc(r.results, func(r result) bool { _, ok := r.Figures[f.key]; return ok }) {
			text.WriteString("| " + f.title + " | `" + f.key + "` | " + f.meaning + " |\n")
		}
	}
	return text.String()
}

// plots returns charts of values that should be constant: time and CPU per promotion.
func (r report) plots() string {
	perPromotion := func(key string) func(result) float64 {
		return func(r result) float64 { return 1000 * r.Figures[key] / float64(r.Rollouts) }
	}
	floors := slices.DeleteFunc(slices.Clone(r.results), func(r result) bool { return r.Figures["wave.floor"] == 0 })
	return chart("Time per promotion in a wave: the controller (bars), the bare client (line)", floors, perPromotion("wave.time"), perPromotion("wave.floor")) +
		"\n" + chart("CPU time of the controller per promotion in a wave", r.results, func(r result) float64 { return r.Figures["wave.cpu"] }, nil)
}

// chart draws bars, and a line if there is one, in milliseconds.
func chart(title string, results []result, bars, line func(result) float64) string {
	var names, heights, points []string
	for _, r := range results {
		names = append(names, strconv.Quote(r.String()))
		heights = append(heights, shown(bars(r)))
		if line != nil {
			points = append(points, shown(line(r)))
		}
	}
	text := fmt.Sprintf("```mermaid\nxychart-beta\n    title %q\n    x-axis [%s]\n    y-axis \"milliseconds\" 0 --> %s\n    bar [%s]\n",
		title, strings.Join(names, ", "), shown(top(results, bars, line)), strings.Join(heights, ", "))
	if line != nil {
		text += "    line [" + strings.Join(points, ", ") + "]\n"
	}
	return text + "```\n"
}

// top returns the top of the y-axis, above the highest value.
func top(results []result, series ...func(result) float64) float64 {
	highest := 0.0
	for _, values := range series {
		for _, r := range results {
			if values != nil {
				highest = max(highest, values(r))
			}
		}
	}
	return cmp.Or(math.Ceil(highest*1.2), 1)
}
