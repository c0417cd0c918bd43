// SPDX-License-Identifier: Apache-2.0

package class

import (
	"context"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/class/object"
)

func (m Means) object(p *Probe, check *v1alpha1.HealthCheck) error {
	criteria, err := object.Compile(check.Spec.Object)
	if err != nil {
		return &health.Problem{Text: err.Error()}
	}
	namespace := check.Namespace
	p.Destination = "objects in " + namespace
	var seen sighting
	p.run = func(ctx context.Context, subject Subject, _ time.Time) (health.Outcome, string, error) {
		ctx, cancel := context.WithTimeout(ctx, p.Spec.Timeout)
		defer cancel()
		outcome, exist := m.Objects.Measure(ctx, namespace, criteria, seen.since(subject))
		if exist {
			seen = sighting{true, subject.Reset}
		}
		return outcome, "", nil
	}
	return nil
}

// sighting remembers that the objects were there since a reset. Only one measurement of a
// probe is under way.
type sighting struct {
	seen  bool
	reset time.Time
}

// since reports whether the objects were seen since the reset. After a restart that is known
// if a measurement has decided something.
func (s sighting) since(subject Subject) bool {
	return s.seen && s.reset.Equal(subject.Reset) || subject.Number > 0
}
