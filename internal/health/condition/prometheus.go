// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"fmt"
	"math"
	"time"

	"github.com/google/cel-go/common/types"

	"github.com/fluxrollouts/rollout-controller/internal/health/limit"
)

// Release is the release that is measured: the variable release. What is not known is
// empty.
type Release struct{ Tag, Digest, Version, Revision string }

func (r Release) fields() map[string]string {
	return map[string]string{"tag": r.Tag, "digest": r.Digest, "version": r.Version, "revision": r.Revision}
}

// Series is one series of an answer of Prometheus.
type Series struct {
	// Labels of the series.
	Labels map[string]string
	// Values, the oldest first. The answer at an instant has one. A NaN is no data, and is
	// left out.
	Values []float64
}

// Samples are the variables of the class prometheus.
type Samples struct {
	// Series of the answer.
	Series []Series
	// Baseline is the value before the promotion; nil if there is none.
	Baseline *float64
	// Release that is measured.
	Release Release
	// Elapsed is the time since the HealthCheck was reset.
	Elapsed time.Duration
}

func (s Samples) values() (map[string]any, error) {
	if len(s.Series) > limit.Series {
		return nil, refusal(fmt.Sprintf("there are more than %d series: aggregate them, for example with sum or max", limit.Series))
	}
	series, all := make([]map[string]any, 0, len(s.Series)), []float64{}
	for _, one := range s.Series {
		if len(one.Values) > limit.Points {
			return nil, refusal(fmt.Sprintf("a series has more than %d points: use a longer step", limit.Points))
		}
		numbers := withoutNaN(one.Values)
		all = append(all, numbers...)
		series = append(series, map[string]any{"labels": one.Labels, "values": numbers})
	}
	return map[string]any{
		"value": func() any { return s.only(all) }, "values": all, "series": series, "baseline": s.baseline(),
		"release": s.Release.fields(), "elapsed": s.Elapsed,
	}, nil
}

// only returns the variable value, which exists if there is one series: its last number.
func (s Samples) only(numbers []float64) any {
	switch {
	case len(s.Series) > 1:
		return types.WrapErr(refusal(fmt.Sprintf(
			"value is not defined, because there are %d series: aggregate them, or use series or values", len(s.Series))))
	case len(numbers) == 0:
		return types.WrapErr(refusal("value is not defined, because there is no number"))
	}
	return numbers[len(numbers)-1]
}

func (s Samples) baseline() *types.Optional {
	if s.Baseline == nil || math.IsNaN(*s.Baseline) {
		return types.OptionalNone
	}
	return types.OptionalOf(types.Double(*s.Baseline))
}

func withoutNaN(values []float64) []float64 {
	numbers := make([]float64, 0, len(values))
	for _, v := range values {
		if !math.IsNaN(v) {
			numbers = append(numbers, v)
		}
	}
	return numbers
}
