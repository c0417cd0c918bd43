// SPDX-License-Identifier: Apache-2.0

package probing

import (
	"context"
	"time"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/health"
	"github.com/fluxrollouts/rollout-controller/internal/health/object"
)

func (m Means) object(p *Probe, check *v1alpha1.HealthCheck) error {
	criteria, err := object.Compile(check.Spec.Object)
	if err != nil {
		return &health.Problem{Text: err.Error()}
	}
	namespace := check.Namespace
	p.Destination = "objects in " + namespace
	p.run = func(ctx context.Context, _ Subject, _ time.Time) (health.Outcome, string, error) {
		ctx, cancel := context.WithTimeout(ctx, p.Spec.Timeout)
		defer cancel()
		return m.Objects.Measure(ctx, namespace, criteria), "", nil
	}
	return nil
}
