// SPDX-License-Identifier: Apache-2.0

package condition

import (
	"time"

	"github.com/google/cel-go/common/types"
)

// Release is the release that is measured: the variable release. A field that is not
// known is empty.
type Release struct{ Tag, Digest, Version, Revision string }

func (r Release) fields() map[string]string {
	return map[string]string{"tag": r.Tag, "digest": r.Digest, "version": r.Version, "revision": r.Revision}
}

// Sample contains the variables of the class prometheus.
type Sample struct {
	// Value is the number that was measured.
	Value float64
	// Baseline is the value of the last good time; nil if there is none.
	Baseline *float64
	// Release that is measured.
	Release Release
	// Elapsed is the time since the HealthCheck was reset.
	Elapsed time.Duration
}

func (s Sample) values() (map[string]any, error) {
	baseline := types.OptionalNone
	if s.Baseline != nil {
		baseline = types.OptionalOf(types.Double(*s.Baseline))
	}
	return map[string]any{"value": s.Value, "baseline": baseline, "release": s.Release.fields(), "elapsed": s.Elapsed}, nil
}
