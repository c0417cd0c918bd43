// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

const (
	// shownInARow is how many measurements a message names.
	shownInARow = 5
	// longestText is how many characters of a measurement or a condition a message has. Of
	// the newest measurement it has longestMessage.
	longestText = 100
	// longestVerdict is the limit of a message.
	longestVerdict = 1024
)

// inARow describes the last measurements in a row that are all good, or all bad:
//
//	0.0312, 0.0298, 0.0305 (3 of 3 bad; value <= 0.01), before 0.004, 5 of 30 bad in all
//
// The oldest is first. Bad ones that are not in the row are counted at the end. A row that is longer than the threshold is not counted on, because
// the message would change with each measurement.
func (c Count) inARow(s Spec) string {
	kind, word, n, threshold := v1alpha1.MeasurementGood, "good", c.good, s.SuccessThreshold
	if c.bad > 0 {
		kind, word, n, threshold = v1alpha1.MeasurementBad, "bad", c.bad, s.FailureThreshold
	}
	n = min(n, threshold)
	row := c.row(kind, s.NoData, min(n, shownInARow))
	message := strings.Join(texts(row), ", ") + fmt.Sprintf(" (%d of %d %s%s)", n, threshold, word, condition(s))
	if newest := row[len(row)-1]; newest.Baseline != "" {
		message += ", before " + newest.Baseline
	}
	if c.totals.Bad > c.bad {
		message += fmt.Sprintf(", %s bad in all", c.totals)
	}
	return strings.TrimSpace(message)
}

// row returns the last n measurements that count for a result, the oldest first.
func (c Count) row(kind v1alpha1.MeasurementResult, noData v1alpha1.NoDataPolicy, n int) []Measurement {
	var row []Measurement
	for _, m := range c.newest {
		if len(row) < n && m.counted(noData) == kind {
			row = append(row, m)
		}
	}
	if len(row) == 0 { // newer ones that are neither fill the list
		row = append(row, Measurement{Message: "measured earlier"})
	}
	slices.Reverse(row)
	return row
}

func texts(row []Measurement) []string {
	var all []string
	for i, m := range row {
		longest := longestText
		if i == len(row)-1 {
			longest = longestMessage
		}
		if text := m.text(); text != "" {
			all = append(all, truncate.Text(text, longest))
		}
	}
	return all
}

func condition(s Spec) string {
	if s.Condition == "" {
		return ""
	}
	return "; " + truncate.Text(clean(s.Condition), longestText)
}

// pending describes what is missing for a verdict.
func (c Count) pending(s Spec) string {
	switch {
	case c.good+c.bad > 0:
		return c.inARow(s)
	case !c.measured():
		return "waiting for the first measurement"
	}
	return c.why()
}

// unobserved says since when there was no good or bad measurement, and why.
func (c Count) unobserved() string {
	since := "not observed since " + c.since().UTC().Format(time.TimeOnly) + " UTC"
	if !c.measured() || c.last.Result == v1alpha1.MeasurementGood || c.last.Result == v1alpha1.MeasurementBad {
		return since + ": no measurement has ended"
	}
	return since + ": " + c.last.text()
}

// why says why the last measurement is neither good nor bad.
func (c Count) why() string {
	if c.last.Result == v1alpha1.MeasurementNoData {
		return c.last.text()
	}
	return "not observed: " + c.last.text()
}

// fit returns a message as a status has space for it.
func fit(message string) string { return truncate.Text(clean(message), longestVerdict) }
