// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"strings"

	"github.com/fluxrollouts/rollout-controller/api/v1alpha1"
	"github.com/fluxrollouts/rollout-controller/internal/promotion"
	"github.com/fluxrollouts/rollout-controller/internal/promotion/evidence"
)

// culprits are the names of what blocks releases, by the reason of the condition that
// names them: the closed gates, and the HealthChecks that are Unhealthy. It is nil if
// nothing does, or if it is not known.
type culprits map[string]string

func culpritsOf(in promotion.Input) culprits {
	var gates, checks []string
	for i := range in.Gates.Gates {
		if gate := &in.Gates.Gates[i]; !gate.IsPassing() {
			gates = append(gates, gate.Name)
		}
	}
	for _, check := range evidence.Unhealthy(in.Health.Checks) {
		checks = append(checks, check.Namespace+"/"+check.Name)
	}
	if len(gates)+len(checks) == 0 {
		return nil
	}
	return culprits{
		v1alpha1.SomeGatesBlockingReason:     strings.Join(gates, " "),
		v1alpha1.UnhealthyHealthChecksReason: strings.Join(checks, " "),
	}
}

// differ reports whether the condition with a reason names others now.
func (c culprits) differ(now culprits, reason string) bool {
	return c != nil && now != nil && c[reason] != now[reason]
}

// replaceCulprits remembers the culprits that are stored now, and returns those before. After
// a restart none are known, and a change that was not seen is not announced.
func (m *remembered) replaceCulprits(now culprits) (before culprits) {
	before, m.culprits = m.culprits, now
	return before
}
