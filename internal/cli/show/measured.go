// SPDX-License-Identifier: Apache-2.0

package show

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/cli/measured"
)

const (
	// mostMeasurements is how many measurements are shown.
	mostMeasurements = 5
	// writePace is how long the controller may keep measurements that do not change the
	// verdict, before it writes them.
	writePace = time.Minute
)

// Measured returns what a HealthCheck has measured, as lines: the condition, the newest
// measurements, and when it is measured next. The message of its status is not among them.
// The lines are clean.
func Measured(c measured.Check, now time.Time, zone *time.Location) []string {
	all := []string{Clean(subject(c))}
	if c.Problem != "" && !strings.Contains(c.Message, c.Problem) {
		all = append(all, Clean("cannot be measured: "+c.Problem))
	}
	if c.Bad > 0 {
		all = append(all, fmt.Sprintf("%d of %d measurements since the reset were bad", c.Bad, c.Good+c.Bad))
	}
	if c.Note != "" {
		all = append(all, Clean(c.Note))
	}
	all = append(all, measurements(c, zone).lines()...)
	return append(all, Clean(plan(c, now, zone)))
}

// subject returns what is measured, and what is good.
func subject(c measured.Check) string {
	text := c.Class
	if c.Subject != "" {
		text += " " + c.Subject
	}
	if c.Condition != "" {
		text += ": good if " + c.Condition
	}
	if c.Version != "" {
		text += " (about " + c.Version + ")"
	}
	return text
}

// measurements returns the newest measurements. A column that is empty is left out, except
// for the value.
func measurements(c measured.Check, zone *time.Location) Table {
	newest := c.Measurements[:min(len(c.Measurements), mostMeasurements)]
	if len(newest) == 0 {
		return Table{}
	}
	hasBaseline := slices.ContainsFunc(newest, func(m v1alpha1.Measurement) bool { return m.Baseline != "" })
	t := Table{Header: row(hasBaseline, "WHEN", "VALUE", "BASELINE", "RESULT", "MESSAGE")}
	if !slices.ContainsFunc(newest, func(m v1alpha1.Measurement) bool { return m.Message != "" }) {
		t.Header = t.Header[:len(t.Header)-1]
	}
	for _, m := range newest {
		t.Rows = append(t.Rows, row(hasBaseline, Exact(m.At.Time, zone), orDash(m.Value), orDash(m.Baseline), string(m.Result), m.Message))
	}
	return t
}

func row(hasBaseline bool, when, value, baseline, result, message string) []string {
	if hasBaseline {
		return []string{when, value, baseline, result, message}
	}
	return []string{when, value, result, message}
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// plan says when the HealthCheck is measured next, or why not. Measurements of the last
// minute may be missing in the status. So the time of the next one is late only after that.
func plan(c measured.Check, now time.Time, zone *time.Location) string {
	if c.Next == nil {
		return "it " + c.Plan
	}
	switch late := now.Sub(c.Next.Time); {
	case late < 0:
		return "next at " + Exact(c.Next.Time, zone) + ": it " + c.Plan
	case late <= writePace:
		return "next at any moment: it " + c.Plan
	default:
		return "late, due since " + Exact(c.Next.Time, zone) + ": the controller does not run, or measures others first"
	}
}
