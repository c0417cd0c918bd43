// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"math"

	"github.com/prometheus/common/model"
)

// read returns the number in an answer; nil if there is none. NaN is not a number, and infinity
// is one. Several series are an error, also if most of them have no number now: which one
// has may differ from one measurement to the next.
func read(value model.Value) (*float64, error) {
	switch value := value.(type) {
	case *model.Scalar:
		return number(value.Value), nil
	case model.Vector:
		return readVector(value)
	case model.Matrix:
		return nil, errRange
	}
	return nil, errNotPrometheus
}

func readVector(vector model.Vector) (*float64, error) {
	switch {
	case len(vector) == 0:
		return nil, nil
	case len(vector) > 1:
		return nil, errManySeries
	case vector[0] == nil:
		return nil, errNotPrometheus
	case vector[0].Histogram != nil:
		return nil, errHistogram
	}
	return number(vector[0].Value), nil
}

func number(value model.SampleValue) *float64 {
	if n := float64(value); !math.IsNaN(n) {
		return &n
	}
	return nil
}
