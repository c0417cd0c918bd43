// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"math"

	"github.com/prometheus/common/model"

	"github.com/fluxrollouts/rollout-controller/internal/health/limit"
)

// Data contains the numbers of an answer. NaN is no number, so it is left out, and so is a
// series that has nothing else. Infinity is a number.
type Data struct {
	Series []Series
	// Warnings is how many warnings the answer has.
	Warnings int
}

// Series is a series of an answer. It has at least one value.
type Series struct {
	// Labels includes __name__ if the series has a name. A scalar has no labels.
	Labels map[string]string
	// Values are ordered by time. An instant query has one per series.
	Values []float64
}

// Value returns the last number of the only series. It returns false if there are none or
// several.
func (d Data) Value() (float64, bool) {
	if len(d.Series) != 1 {
		return 0, false
	}
	values := d.Series[0].Values
	return values[len(values)-1], true
}

// Values returns all numbers, series by series.
func (d Data) Values() []float64 {
	var all []float64
	for _, series := range d.Series {
		all = append(all, series.Values...)
	}
	return all
}

// read takes the numbers from an answer.
func read(value model.Value) (Data, error) {
	var data Data
	switch value := value.(type) {
	case *model.Scalar:
		data.add(nil, value.Value)
	case model.Vector:
		return readVector(value)
	case model.Matrix:
		return readMatrix(value)
	default:
		return Data{}, errNotPrometheus
	}
	return data, nil
}

func readVector(vector model.Vector) (Data, error) {
	var data Data
	if len(vector) > limit.Series {
		return Data{}, errManySeries
	}
	for _, sample := range vector {
		switch {
		case sample == nil:
			return Data{}, errNotPrometheus
		case sample.Histogram != nil:
			return Data{}, errHistogram
		}
		data.add(sample.Metric, sample.Value)
	}
	return data, nil
}

func readMatrix(matrix model.Matrix) (Data, error) {
	var data Data
	if len(matrix) > limit.Series {
		return Data{}, errManySeries
	}
	for _, stream := range matrix {
		switch {
		case stream == nil:
			return Data{}, errNotPrometheus
		case len(stream.Histograms) > 0:
			return Data{}, errHistogram
		}
		values := make([]model.SampleValue, len(stream.Values))
		for i, pair := range stream.Values {
			values[i] = pair.Value
		}
		data.add(stream.Metric, values...)
	}
	return data, nil
}

func (d *Data) add(metric model.Metric, values ...model.SampleValue) {
	var numbers []float64
	for _, value := range values {
		if number := float64(value); !math.IsNaN(number) {
			numbers = append(numbers, number)
		}
	}
	if len(numbers) == 0 {
		return
	}
	labels := make(map[string]string, len(metric))
	for name, value := range metric {
		labels[string(name)] = string(value)
	}
	d.Series = append(d.Series, Series{labels, numbers})
}
