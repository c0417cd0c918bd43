// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/truncate"
)

// kept is how many measurements a status contains.
const kept = 10

const (
	// longestValue and longestListed are the limits of the fields of a measurement in the
	// schema.
	longestValue  = 64
	longestListed = 128
	// longestMessage is how much of a message the message of the status has space for: that
	// a Job failed, and why, with 256 characters of its termination message.
	longestMessage = 384
)

// Measurement is what one measurement says. All texts are of this project: they contain
// nothing that another server sent, except numbers, names and phases.
type Measurement struct {
	// At is when it was measured.
	At time.Time
	// Value is the number that was measured; empty if there is none. Number writes one.
	Value string
	// Baseline is the number that it was compared with; empty if there is none.
	Baseline string
	// Result says whether it is good, bad, or not known.
	Result v1alpha1.MeasurementResult
	// Message explains the result. It may be empty if the value does.
	Message string
}

// Number returns a number as it is shown: with four significant digits, and all digits
// before the point. For example 0.0312, 14 and 123457.
func Number(v float64) string {
	const significant = 4
	switch size := math.Abs(v); {
	case v == 0:
		return "0" // also of a negative zero
	case size >= 1e3 && size < 1e15:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', significant, 64)
}

// counted returns what the measurement counts for: Good, Bad, or neither.
func (m Measurement) counted(noData v1alpha1.NoDataPolicy) v1alpha1.MeasurementResult {
	if m.Result != v1alpha1.MeasurementNoData {
		return m.Result
	}
	switch noData {
	case v1alpha1.NoDataHealthy:
		return v1alpha1.MeasurementGood
	case v1alpha1.NoDataUnhealthy:
		return v1alpha1.MeasurementBad
	case v1alpha1.NoDataPending:
	}
	return m.Result
}

// text returns the measurement in a few words.
func (m Measurement) text() string {
	switch {
	case m.Value == "" && m.Message == "" && m.Result == v1alpha1.MeasurementNoData:
		return "no data"
	case m.Value == "":
		return m.Message
	case m.Message == "":
		return m.Value
	}
	return m.Value + " (" + m.Message + ")"
}

// bounded returns the measurement as the message of a status has space for it.
func (m Measurement) bounded() Measurement {
	m.Value = truncate.Text(clean(m.Value), longestValue)
	m.Baseline = truncate.Text(clean(m.Baseline), longestValue)
	m.Message = truncate.Text(clean(m.Message), longestMessage)
	return m
}

// clean returns a text as one line of valid characters.
func clean(text string) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
}

// toStatus returns measurements as a status contains them.
func toStatus(all []Measurement) []v1alpha1.Measurement {
	var shown []v1alpha1.Measurement
	for _, m := range all {
		shown = append(shown, v1alpha1.Measurement{
			At: metav1.Time{Time: m.At.Truncate(time.Second)}, Value: m.Value, Baseline: m.Baseline, Result: m.Result, Message: truncate.Text(m.Message, longestListed),
		})
	}
	return shown
}

// fromStatus returns the measurements that a status contains, the newest first.
func fromStatus(shown []v1alpha1.Measurement) []Measurement {
	var all []Measurement
	for _, m := range shown[:min(len(shown), kept)] {
		all = append(all, Measurement{At: m.At.Time, Value: m.Value, Baseline: m.Baseline, Result: m.Result, Message: m.Message}.bounded())
	}
	return all
}

// prepend returns the newest measurements, the newest first.
func prepend(m Measurement, all []Measurement) []Measurement {
	return slices.Concat([]Measurement{m}, all[:min(len(all), kept-1)])
}
