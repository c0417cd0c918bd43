// SPDX-License-Identifier: Apache-2.0

package evidence

import (
	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/verdict"
)

// Health contains the selected HealthChecks.
type Health struct {
	// Checks that the Rollout selects, sorted by namespace and name.
	Checks []v1alpha1.HealthCheck
	// Rejected explains why checks cannot be reset: the API server rejected the write. The
	// key is "namespace/name".
	Rejected map[string]string
	// Shared are the checks of what several Rollouts deploy together: they condemn none of
	// the releases. The key is "namespace/name".
	Shared map[string]bool
	// Problem is set if the HealthChecks could not be selected or read.
	Problem *verdict.Problem
}
